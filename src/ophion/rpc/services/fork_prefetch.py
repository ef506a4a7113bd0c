"""Fetches in one batch the state that a call or transaction reads, before a node that forks another chain runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ophion.errors import OphionError
from ophion.native.executor import CallRequest, call
from ophion.native.transactions import decode_transactions
from ophion.primitives.hexcodec import data
from ophion.primitives.types import ZERO_ADDRESS
from ophion.rpc.services.call_object import Call, decode_call
from ophion.rpc.services.context import RpcContext

if TYPE_CHECKING:
    from ophion.dev.fork.remote_state import Fork

_TRIAL_GAS: Final = 30_000_000
_TRIAL_S: Final = 5.0


async def prefetch(ctx: RpcContext, fork: Fork, params: Sequence[Any]) -> None:
    """Fetch the state that a call or transaction reads. Errors are ignored here, because the request itself meets and
    reports the same errors.
    """
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
