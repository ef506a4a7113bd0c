"""`RpcDispatch`: JSON-RPC of an embedded node, without a socket.

A request goes through the same dispatcher as over HTTP, so results and errors are the same. No sealer runs in the
background: the transactions of a request are mined before the request returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from ophion.node.interface_options import ApiGroup
from ophion.node.services import PublicInterface, build_interface
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.endpoints.services import method_table
from ophion.rpc.schema.registry import HTTP
from ophion.rpc.transport.replies import Answer, Complete, PendingReply, whole
from ophion.rpc.transport.streaming import StreamedAnswer
from ophion.runtime.clock import SystemEntropy

if TYPE_CHECKING:
    from ophion.sdk.embedded_core import EmbeddedCore

_MAX_RESPONSE_BYTES = 1024 * 1024 * 1024
_TIMEOUT_S = 600.0


class RpcDispatch:
    """JSON-RPC methods of an embedded node."""

    def __init__(self, node: EmbeddedCore) -> None:
        self._node = node
        self._runner = node.runner
        self.interface: PublicInterface = node.runner.run(self._build())
        limits = DispatchLimits(timeout_s=_TIMEOUT_S, max_response_bytes=_MAX_RESPONSE_BYTES)
        groups = tuple(group.value for group in ApiGroup)
        self._dispatcher = Dispatcher(method_table(self.interface.context, groups, HTTP), node.runner.loop, limits)

    async def _build(self) -> PublicInterface:
        node = self._node
        return build_interface(
            node.config.node_config(), node.genesis, node.core, node.node_key, node.lanes, node.clock, SystemEntropy()
        )

    def answer_request(self, method: str, params: Sequence[Any]) -> bytes:
        """Answer one request, given by method name and parameters."""
        body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, default=_as_json)
        return self.answer(body)

    def answer(self, body: bytes) -> bytes:
        """Answer a message: a request or a batch, as JSON text."""
        return self._node.run(self._answer(body))

    async def answer_async(self, body: bytes) -> bytes:
        """Answer a message (a request or a batch as JSON text) without blocking the event loop of the caller."""
        return await asyncio.get_running_loop().run_in_executor(None, self.answer, body)

    async def _answer(self, body: bytes) -> bytes:
        reply = self._dispatcher.handle(body)
        await self._node.dev.mine_pending()
        while isinstance(reply, PendingReply | StreamedAnswer):
            pending = reply if isinstance(reply, PendingReply) else whole(reply, _MAX_RESPONSE_BYTES)
            reply = await self._resolved(pending)
        return reply.join() if isinstance(reply, Answer) else reply

    async def _resolved(self, pending: PendingReply[Complete]) -> Complete:
        done: asyncio.Future[Complete] = self._runner.loop.create_future()
        pending.deliver = done.set_result
        # mine repeatedly, because a request may take several steps before it adds its transaction to the pool
        while not done.done():
            await self._node.dev.mine_pending()
            await asyncio.sleep(0)
            if not done.done() and not self._node.core.pool.has_executable:
                await asyncio.wait({done}, timeout=0.01)
        await self._node.dev.mine_pending()
        return done.result()

    def close(self) -> None:
        """Cancel all waiting requests."""
        self._dispatcher.close()


def _as_json(value: object) -> object:
    """Encode values that JSON-RPC represents as text: bytes, numbers beyond 64 bits, and objects with an `address`."""
    if isinstance(value, bytes | bytearray):
        return "0x" + value.hex()
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, str):
        return str(value)
    address = getattr(value, "address", None)
    if address is not None:
        return address
    raise TypeError(f"{value!r} has no JSON form")
