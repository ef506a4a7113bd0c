"""Tests what a worker answers itself and what it forwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from ophion.node.rpc_workers.node_state import NeedsNode, needs_node
from ophion.node.rpc_workers.worker_dispatcher import WorkerDispatcher, worker_table
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.schema.caller import Caller
from ophion.rpc.schema.registry import BoundMethod, MethodTable
from ophion.rpc.transport.replies import Answer, Complete, PendingReply, Reply
from ophion.testing.wait_for import until

Sent = list[tuple[bytes, bool]]


def bound(name: str, invoke: Callable[..., Any], may_wait: bool = False) -> BoundMethod:
    """Return a method whose parameters are decoded to their number."""
    return BoundMethod(
        lambda params, caller: invoke(len(params)),
        orjson.dumps,
        may_wait,
        name,
        lambda params: [len(params)],
        lambda values, caller: invoke(values[0]),
    )


async def _later(count: int) -> int:
    await asyncio.sleep(0)
    if not count:
        raise NeedsNode
    return count


def _refuse(*values: Any) -> Any:
    raise ValueError


TABLE = MethodTable.of(
    {
        "eth_getBalance": bound("eth_getBalance", lambda count: count if count else needs_node()),
        "eth_call": bound("eth_call", _later, may_wait=True),
        "txpool_status": bound("txpool_status", _refuse),
        "eth_getLogs": BoundMethod(lambda params, caller: "off", orjson.dumps, False, ""),
    }
)


class Stage:
    """A dispatcher of a worker whose node answers at once with the request."""

    def __init__(self) -> None:
        self.sent: Sent = []
        self.followed = 0
        loop = asyncio.get_running_loop()
        limits = DispatchLimits()
        self.dispatcher = WorkerDispatcher(worker_table(TABLE), loop, limits, self._forward, self._follow)

    def _follow(self) -> None:
        self.followed += 1

    def _forward(self, text: bytes, caller: Caller | None, is_counted: bool) -> PendingReply[Complete]:
        self.sent.append((text, is_counted))
        pending: PendingReply[Complete] = PendingReply()
        asyncio.get_running_loop().call_soon(pending.resolve, Answer(200, (b"answer of ", text)))
        return pending

    async def answer(self, message: bytes) -> bytes:
        reply: Reply = self.dispatcher.handle(message)
        if isinstance(reply, PendingReply):
            found: list[Complete] = []
            reply.deliver = found.append
            await until(lambda: found)
            reply = found[0]
        assert isinstance(reply, bytes | Answer)
        return reply if isinstance(reply, bytes) else reply.join()


def request(method: str, params: str = "[]", id: str = "1") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (id.encode(), method.encode(), params.encode())


CASES = [
    (request("eth_getBalance", '["0x1"]'), b'{"jsonrpc":"2.0","id":1,"result":1}', None),
    (request("eth_getBalance"), None, True),
    (request("eth_call", "[1,2]"), b'{"jsonrpc":"2.0","id":1,"result":2}', None),
    (request("eth_call"), None, True),
    (request("txpool_status"), None, False),
    (request("txpool_status", '["0x1",2.5,{"a":null}]', '"text"'), None, False),
    (request("eth_getLogs"), b'{"jsonrpc":"2.0","id":1,"result":"off"}', None),
]


@pytest.mark.parametrize(("message", "local", "is_counted"), CASES)
def test_requests_are_answered_or_forwarded_as_they_were_sent(
    message: bytes, local: bytes | None, is_counted: bool | None
) -> None:
    async def ask() -> None:
        stage = Stage()
        found = await stage.answer(message)
        if local is not None:
            assert (found, stage.sent) == (local, [])
        else:
            assert found == b"answer of " + message
            assert stage.sent == [(message, is_counted)]
        assert stage.followed == 1

    asyncio.run(ask())


@pytest.mark.parametrize("size", [5_000, 100_000])
def test_long_requests_are_forwarded_whole(size: int) -> None:
    async def ask() -> None:
        stage = Stage()
        for name, is_counted in (("txpool_status", False), ("eth_getBalance", None), ("eth_call", None)):
            message = request(name, '["0x%s"]' % ("ab" * size))  # braces of JSON
            found = await stage.answer(message)
            if is_counted is None:
                assert found == b'{"jsonrpc":"2.0","id":1,"result":1}'
            else:
                assert stage.sent.pop() == (message, is_counted)

    asyncio.run(ask())


def test_a_long_local_request_that_needs_the_node_is_forwarded_with_its_parameters() -> None:
    async def ask() -> None:
        stage = Stage()
        message = request("eth_getBalance", "[]", '"%s"' % ("i" * 5_000))
        assert await stage.answer(message) == b"answer of " + message

    asyncio.run(ask())


def test_a_raw_transaction_is_forwarded() -> None:
    async def ask() -> None:
        stage = Stage()
        table = MethodTable.of({"eth_sendRawTransaction": bound("eth_sendRawTransaction", _refuse)})
        loop = asyncio.get_running_loop()
        stage.dispatcher = WorkerDispatcher(worker_table(table), loop, DispatchLimits(), stage._forward, lambda: None)
        message = request("eth_sendRawTransaction", '["0x%s"]' % ("ab" * 100))
        assert await stage.answer(message) == b"answer of " + message

    asyncio.run(ask())


def test_members_of_a_batch_are_answered_or_forwarded_one_by_one() -> None:
    async def ask() -> None:
        stage = Stage()
        found = await stage.answer(b"[%b]" % b",".join(message for message, _, _ in CASES))
        expected = [b"answer of " + message if local is None else local for message, local, _ in CASES]
        assert found == b"[%b]" % b",".join(expected)

    asyncio.run(ask())
