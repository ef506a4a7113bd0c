"""Requests that only a node with the preset `anvil` accepts, as Anvil does: call objects with numbers without digits.

The interface of Pantheon 1.2 refuses the number `"0x"`. Anvil reads it as 0, and clients send it. With the preset
`anvil`, a request is changed before it is decoded. Two errors get Anvil's texts, because test suites of client
libraries compare them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Sequence
from typing import Any, Final

from ophion.errors import OphionError, RpcError
from ophion.rpc.errors import UPFRONT_COST, as_rpc_error
from ophion.rpc.presets.anvil_refusals import CALLS
from ophion.rpc.schema.method_table import BoundMethod, MethodTable
from ophion.rpc.schema.registry import Invoke

_NUMBERS: Final = ("value", "gas", "gasPrice", "nonce", "maxFeePerGas", "maxPriorityFeePerGas", "type")


def accept_anvil_forms(table: MethodTable) -> MethodTable:
    """Return a table whose methods take numbers without digits in a call object."""
    return table.map(lambda name, bound: _wrapped(bound) if name in CALLS else bound)


def _wrapped(bound: BoundMethod) -> BoundMethod:
    invoke, decode = _with_anvil_errors(bound.invoke), bound.decode
    return bound._replace(
        call=_with_anvil_errors(bound.call),
        invoke=lambda params, caller: invoke(_with_digits(params), caller),
        decode=None if decode is None else lambda params: decode(_with_digits(params)),
    )


def _with_anvil_errors(function: Invoke) -> Invoke:
    """Return the function with Anvil's text for a balance that is too low."""

    def anvil_error(error: OphionError) -> OphionError:
        known = as_rpc_error(error)
        if known is None or known.message != UPFRONT_COST.message:
            return error
        return RpcError(known.code, "Insufficient funds for gas * price + value", known.data)

    async def later(value: Awaitable[Any]) -> Any:
        try:
            return await value
        except OphionError as error:
            raise anvil_error(error) from None

    def invoke(params: Any, caller: Any) -> Any:
        try:
            value = function(params, caller)
        except OphionError as error:
            raise anvil_error(error) from None
        return later(value) if inspect.isawaitable(value) else value

    return invoke


def _with_digits(params: Sequence[Any]) -> Sequence[Any]:
    call = params[0] if params else None
    if not isinstance(call, dict):
        return params
    empty = [member for member in _NUMBERS if call.get(member) == "0x"]
    return [{**call, **dict.fromkeys(empty, "0x0")}, *params[1:]] if empty else params
