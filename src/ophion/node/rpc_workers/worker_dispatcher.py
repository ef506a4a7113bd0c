"""Dispatcher of a worker: answers from the database, or forwards the request to the node.

A method of the table is either local or bound to `needs_node`. A local handler that needs the state of the node raises
`NeedsNode`. In both cases the worker forwards the request with the client's id to the node, and returns the whole
answer of the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import CoroutineType
from typing import Any, Final, NamedTuple, Protocol

import orjson

from ophion.node.rpc_workers.local_methods import LOCAL_METHODS
from ophion.node.rpc_workers.node_state import NeedsNode, needs_node
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.errors import STOPS
from ophion.rpc.schema.registry import BoundMethod, Caller, Invoke, MethodTable
from ophion.rpc.transport.replies import LARGE, SUCCESS, Complete, PendingReply, Reply
from ophion.runtime.eager_coroutine import driven

_REQUEST: Final = b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}'


class Forward(Protocol):
    """Sends one JSON-RPC request to the node and returns its answer later."""

    def __call__(self, text: bytes, caller: Caller | None, is_counted: bool) -> PendingReply[Complete]: ...


class _Decoded(NamedTuple):
    """Parameters of a long request: encoded as the client sent them, and decoded."""

    given: Sequence[Any]
    values: Sequence[Any]


def worker_table(table: MethodTable) -> MethodTable:
    """Return the methods of a worker. `table` has the same enabled methods as the node."""
    return table.map(_of_worker)


def _of_worker(name: str, bound: BoundMethod) -> BoundMethod:
    if not bound.name:
        return bound  # the method is not enabled: the worker returns its error without the node
    if bound.name not in LOCAL_METHODS:
        return BoundMethod(needs_node, bytes, False, bound.name, _same, needs_node, wire_name=name)
    if bound.decode is None:
        return bound._replace(wire_name=name)
    decode = bound.decode
    return bound._replace(
        decode=lambda given: _Decoded(given, decode(given)), call=_with_values(bound.call), wire_name=name
    )


def _same(given: Sequence[Any]) -> Sequence[Any]:
    return given


def _with_values(call: Invoke) -> Invoke:
    def invoke(decoded: Any, caller: Any) -> Any:
        return call(decoded.values, caller)

    return invoke


class WorkerDispatcher(Dispatcher):
    """Dispatches the messages of a worker's clients."""

    def __init__(
        self,
        table: Mapping[str, BoundMethod],
        loop: asyncio.AbstractEventLoop,
        limits: DispatchLimits,
        forward: Forward,
        follow: Callable[[], None],
    ) -> None:
        """Create a dispatcher. `follow` moves the head of this process to that of the node."""
        super().__init__(table, loop, limits)
        self._forward = forward
        self._follow = follow

    def handle(self, body: bytes, caller: Caller | None = None) -> Reply:
        """Move to the node's current head, then answer one message on that head."""
        self._follow()
        return super().handle(body, caller)

    def _call(self, bound: BoundMethod, params: Sequence[Any], caller: Caller | None, id_text: bytes) -> Reply:
        if bound.invoke is needs_node:
            return self._forwarded(bound, params, caller, id_text)
        try:
            value = bound.invoke(params, caller)
            if bound.may_wait:
                if type(value) is CoroutineType:
                    value = driven(value, self._loop)
                if isinstance(value, asyncio.Future):
                    return self._wait(value, bound, params, caller, id_text)
            result = bound.encode(value)
        except STOPS:
            raise
        except NeedsNode:
            return self._forwarded(bound, params, caller, id_text)
        except BaseException as error:  # noqa: BLE001  # the client gets the error
            return self._failed(error, bound.name, id_text)
        return SUCCESS % (id_text, result) if len(result) < LARGE else self._large(id_text, result)

    def _wait(
        self,
        future: asyncio.Future[Any],
        bound: BoundMethod,
        params: Sequence[Any],
        caller: Caller | None,
        id_text: bytes,
    ) -> PendingReply[Complete]:
        pending: PendingReply[Complete] = PendingReply(future.cancel)
        pending.has_timeout = bound.has_timeout

        def finish(done: asyncio.Future[Any]) -> None:
            if pending.is_done:
                return
            if not done.cancelled() and isinstance(done.exception(), NeedsNode):
                pending.follow(self._forwarded(bound, params, caller, id_text))
            else:
                self._finish(pending, bound, id_text, done)

        future.add_done_callback(finish)
        return pending

    def _forwarded(
        self, bound: BoundMethod, params: Sequence[Any], caller: Caller | None, id_text: bytes
    ) -> PendingReply[Complete]:
        if isinstance(params, _Decoded):
            params = params.given
        if len(params) == 1 and type(params[0]) is bytes:  # the Rust code has converted a raw transaction from hex
            written = b'["0x%b"]' % params[0].hex().encode()
        else:
            written = orjson.dumps(params)
        return self._forward(
            _REQUEST % (id_text, orjson.dumps(bound.wire_name), written), caller, bound.invoke is not needs_node
        )


def dispatcher_maker(forward: Forward, follow: Callable[[], None]) -> Callable[..., Dispatcher]:
    """Return a function with the signature of `Dispatcher` that makes dispatchers of a worker."""
    return partial(WorkerDispatcher, forward=forward, follow=follow)
