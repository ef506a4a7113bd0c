"""Requests that only a node with the preset `anvil` accepts, as Anvil does: call objects with numbers without digits.

The interface of Pantheon 1.2 refuses the number `"0x"`. Anvil reads it as 0, and clients send it. With the preset
`anvil`, a request is changed before it is decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ophion.rpc.schema.method_table import BoundMethod, MethodTable
from ophion.rpc.services.anvil_refusals import CALLS

_NUMBERS: Final = ("value", "gas", "gasPrice", "nonce", "maxFeePerGas", "maxPriorityFeePerGas", "type")


def taking(table: MethodTable) -> MethodTable:
    """Return a table whose methods take numbers without digits in a call object."""
    return table.map(lambda name, bound: _wrapped(bound) if name in CALLS else bound)


def _wrapped(bound: BoundMethod) -> BoundMethod:
    invoke, decode = bound.invoke, bound.decode
    return bound._replace(
        invoke=lambda params, caller: invoke(_with_digits(params), caller),
        decode=None if decode is None else lambda params: decode(_with_digits(params)),
    )


def _with_digits(params: Sequence[Any]) -> Sequence[Any]:
    call = params[0] if params else None
    if not isinstance(call, dict):
        return params
    empty = [member for member in _NUMBERS if call.get(member) == "0x"]
    return [{**call, **dict.fromkeys(empty, "0x0")}, *params[1:]] if empty else params
