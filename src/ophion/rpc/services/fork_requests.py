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
from ophion.native.executor import CallRequest, call
from ophion.native.transactions import decode_transactions
from ophion.primitives.hexcodec import data
from ophion.primitives.types import ZERO_ADDRESS
from ophion.rpc.schema.registry import BoundMethod, Invoke, MethodTable
from ophion.rpc.services.call_object import Call, decode_call
from ophion.rpc.services.context import RpcContext

if TYPE_CHECKING:
    from ophion.dev.fork.remote_state import Fork

_MAX_ATTEMPTS: Final = 256
"""Limit of attempts per request. Each attempt fetches at least one missing key."""
_TRIAL_GAS: Final = 30_000_000
_TRIAL_S: Final = 5.0
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


def forkable(table: MethodTable, ctx: RpcContext) -> MethodTable:
    """Return a table whose methods fetch missing data from the source node while this node is a fork."""
    return table.map(lambda name, bound: _wrapped(name, bound, ctx))


def _wrapped(name: str, bound: BoundMethod, ctx: RpcContext) -> BoundMethod:
    dev, encode, submit = ctx.dev, bound.encode, bound.submit
    assert dev is not None

    async def fetching(fork: Fork, function: Invoke, params: Sequence[Any], caller: Any, is_plain: bool) -> _Encoded:
        # lazy import: a node that does not fork needs no HTTP client
        from ophion.rpc.services.fork_routes import route

        if is_plain:
            answered = await route(ctx, fork, name, params)
            if answered is not None:
                return _Encoded(answered.encode())
        if name in _SENDS:
            await _prefetch(ctx, fork, params)
        for attempt in range(_MAX_ATTEMPTS):
            try:
                value = encode(await _value(function(params, caller)))
            except (NotFetched, StateNotFetched):
                if attempt == 0 and name in _CALLS:
                    await _prefetch(ctx, fork, params)
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
        task = asyncio.get_running_loop().create_task(_prefetch(ctx, fork, arrival.raws))

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


async def _prefetch(ctx: RpcContext, fork: Fork, params: Sequence[Any]) -> None:
    """Fetch the state that a call or transaction reads. Errors are ignored here; the request itself reports them."""
    requested = _call_of(params)
    if requested is None:
        return
    sender = requested.sender or ZERO_ADDRESS
    request = CallRequest(
        sender=sender,
        to=requested.to,
        gas=min(requested.gas or _TRIAL_GAS, _TRIAL_GAS),
        value=requested.value,
        input=requested.input,
        check_balance=False,
        check_base_fee=False,
    )
    view = ctx.queries.latest
    state, env = ctx.queries.head_state, view.free_env
    asked: dict[str, Any] = {"from": data(sender), "value": hex(requested.value or 0)}
    if requested.to is not None:
        asked["to"] = data(requested.to)
    if requested.input:
        asked["input"] = asked["data"] = data(requested.input)
    await fork.run(lambda: fork.prefetch(lambda: call(state, env, request, (), _TRIAL_S), asked))


def _call_of(params: Sequence[Any]) -> Call | None:
    given = params[0] if params else None
    try:
        if isinstance(given, dict):
            return decode_call(given)
        if isinstance(given, str):
            given = bytes.fromhex(given.removeprefix("0x"))
        if not isinstance(given, bytes):
            return given if isinstance(given, Call) else None
        one = decode_transactions([given])[0]
    except (OphionError, ValueError, TypeError):
        return None
    if isinstance(one, str):
        return None
    return decode_call(
        {
            "from": data(one.sender),
            "to": None if one.to is None else data(one.to),
            "value": hex(one.value),
            "data": data(one.input),
            "gas": hex(one.gas_limit),
        }
    )
