"""Requests to a node that forks the chain of another node, the source: fetches blocks and state from the source.

- Blocks, receipts, traces and states before the forked block come from the source. The source's answers are cached.
- This node runs all other requests itself. A read of unknown state ends the attempt. Then the missing keys are fetched
  in one batch, and the request runs again. Transactions are executed before they enter the pool, so that block building
  does not wait.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from ophion.errors import OphionError, StateNotFetched
from ophion.native.exceptions import NotFetched
from ophion.rpc.schema.registry import BoundMethod, Invoke, MethodTable
from ophion.rpc.services.context import RpcContext

if TYPE_CHECKING:
    from ophion.dev.fork.remote_state import Fork

_MAX_ATTEMPTS: Final = 256
"""Limit of attempts per request. Each attempt fetches at least one missing key."""
_CALLS: Final = ("eth_call", "eth_estimateGas", "eth_createAccessList", "debug_traceCall", "trace_call")
_SENDS: Final = (
    "eth_sendTransaction",
    "eth_sendUnsignedTransaction",
    "eth_sendRawTransaction",
    "eth_sendRawTransactionSync",
    "eth_fillTransaction",
)


class _Encoded:
    """A result that is already JSON text, so that it is not encoded again."""

    __slots__ = ("text",)

    def __init__(self, text: Any) -> None:
        self.text = text


def is_null(result: Any) -> bool:
    """Return whether the result of a method is null. A fork returns encoded results."""
    return result is None or (type(result) is _Encoded and result.text == b"null")


def forkable(table: MethodTable, ctx: RpcContext) -> MethodTable:
    """Return a table whose methods fetch missing data from the source node while this node is a fork."""
    return table.map(lambda name, bound: _wrapped(name, bound, ctx))


def _wrapped(name: str, bound: BoundMethod, ctx: RpcContext) -> BoundMethod:
    dev, encode, submit = ctx.dev, bound.encode, bound.submit
    assert dev is not None

    async def fetching(fork: Fork, function: Invoke, params: Sequence[Any], caller: Any, is_plain: bool) -> _Encoded:
        # lazy import: a node that does not fork starts faster without these modules
        from ophion.rpc.services.fork_prefetch import prefetch
        from ophion.rpc.services.fork_routes import route

        if is_plain:
            answered = await route(ctx, fork, name, params)
            if answered is not None:
                return _Encoded(answered.encode())
        if name in _SENDS:
            await prefetch(ctx, fork, params)
        for attempt in range(_MAX_ATTEMPTS):
            try:
                value = encode(await _value(function(params, caller)))
            except (NotFetched, StateNotFetched):
                if attempt == 0 and name in _CALLS:
                    await prefetch(ctx, fork, params)
                await fork.run(fork.load_wanted)
                continue
            return _Encoded(await _with_older(ctx, fork, name, params, value) if is_plain else value)
        raise StateNotFetched(f"{name} reads too many values of the forked chain one by one")

    def switched(function: Invoke, is_plain: bool) -> Invoke:
        def invoke(params: Sequence[Any], caller: Any) -> Any:
            fork = dev.fork
            return function(params, caller) if fork is None else fetching(fork, function, params, caller, is_plain)

        return invoke

    def sent(arrival: Any) -> None:
        assert submit is not None
        fork = dev.fork
        if fork is None:
            submit(arrival)
            return
        from ophion.rpc.services.fork_prefetch import prefetch  # lazy import: only forks need this module

        task = asyncio.get_running_loop().create_task(prefetch(ctx, fork, arrival.raws))

        def then(done: asyncio.Task[None]) -> None:
            error = None if done.cancelled() else done.exception()
            if isinstance(error, OphionError):
                arrival.fail(error)
            else:
                submit(arrival)

        task.add_done_callback(then)

    return bound._replace(
        invoke=switched(bound.invoke, is_plain=True),
        call=switched(bound.call, is_plain=False),
        encode=lambda value: value.text if type(value) is _Encoded else encode(value),
        may_wait=True,
        submit=None if submit is None else sent,
    )


async def _with_older(ctx: RpcContext, fork: Fork, name: str, params: Sequence[Any], value: bytes) -> Any:
    """For `eth_getLogs`, prepend the source node's logs up to the forked block to the logs of this node."""
    if name != "eth_getLogs":
        return value
    from ophion.rpc.services.fork_routes import older_logs

    older = await older_logs(ctx, fork, params)
    return value if not older else orjson.dumps(older + orjson.loads(value))


async def _value(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
