"""Requests that only a node with the preset `anvil` accepts, as Anvil does.

The interface of Pantheon 1.2 refuses the number `"0x"`, decimal digits, `data` that differs from `input`, and fields
that contradict each other. Anvil reads the first as 0, takes `input`, and ignores the type of a request: the other
fields choose the type. With the preset, a request is changed before it is decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ophion.primitives.hexcodec import quantity
from ophion.rpc.presets.anvil_refusals import CALLS, SENDS
from ophion.rpc.schema.method_table import BoundMethod, MethodTable
from ophion.wallet.unsigned_transaction import ACCESS_LIST, BLOB, DYNAMIC_FEE, LEGACY, SET_CODE

_NUMBERS: Final = ("value", "gas", "gasPrice", "nonce", "maxFeePerGas", "maxPriorityFeePerGas", "type")
_NEW_FEES: Final = ("maxFeePerGas", "maxPriorityFeePerGas")
_MAX_DIGITS: Final = 78
"""Decimal digits of 2^256 - 1."""


def accept_anvil_forms(table: MethodTable) -> MethodTable:
    """Return a table whose methods take call objects in Anvil's forms."""
    return table.map(lambda name, bound: _wrapped(bound, name in SENDS) if name in CALLS else bound)


def _wrapped(bound: BoundMethod, is_sent: bool) -> BoundMethod:
    invoke, decode = bound.invoke, bound.decode
    return bound._replace(
        invoke=lambda params, caller: invoke(_in_our_form(params, is_sent), caller),
        decode=None if decode is None else lambda params: decode(_in_our_form(params, is_sent)),
    )


def _in_our_form(params: Sequence[Any], is_sent: bool) -> Sequence[Any]:
    """Return the parameters with a changed call object; the same parameters if nothing needs a change."""
    call = params[0] if params else None
    if not isinstance(call, dict):
        return params
    changes: dict[str, Any] = {
        member: text for member in _NUMBERS if (text := _hexadecimal(call.get(member))) is not None
    }
    if call.get("input") is not None and call.get("data", call["input"]) != call["input"]:
        changes["data"] = None
    if is_sent:
        changes |= _without_contradictions({**call, **changes})
    return [{**call, **changes}, *params[1:]] if changes else params


def _hexadecimal(value: Any) -> str | None:
    """Return a number without digits, or with decimal digits, in hexadecimal form; None for every other value."""
    if value == "0x":
        return "0x0"
    if not isinstance(value, str) or not value.isascii() or not value.isdecimal() or len(value) > _MAX_DIGITS:
        return None
    return quantity(int(value))


def _without_contradictions(call: dict[str, Any]) -> dict[str, Any]:
    """Return the changes that make the fields of a transaction request agree: a gas price excludes the newer fees, and
    a type that other fields contradict is omitted.
    """
    changes: dict[str, Any] = {}
    has_price = call.get("gasPrice") is not None
    has_fees = not has_price and any(call.get(member) is not None for member in _NEW_FEES)
    if has_price:
        changes |= {member: None for member in _NEW_FEES if call.get(member) is not None}
    kind = _number(call.get("type"))
    if kind is None:
        if has_price and call.get("accessList") == []:
            changes["type"] = hex(ACCESS_LIST)
        return changes
    contradicts = (
        (has_price and kind >= DYNAMIC_FEE)
        or (has_fees and kind < DYNAMIC_FEE)
        or (bool(call.get("accessList")) and kind == LEGACY)
        or bool(call.get("blobVersionedHashes")) is not (kind == BLOB)
        or bool(call.get("authorizationList")) is not (kind == SET_CODE)
    )
    return {**changes, "type": None} if contradicts else changes


def _number(value: Any) -> int | None:
    if isinstance(value, int):
        return value
    try:
        return int(value, 16) if isinstance(value, str) else None
    except ValueError:
        return None
