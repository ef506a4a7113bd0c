"""Finds and sets the storage slot of a token balance or allowance.

The access list of a call names the slots that the call reads. The searched slot is the slot whose value changes the
result of the call.
"""

from __future__ import annotations

from collections.abc import Sequence

from ophion.dev.cheat_codes import DevNode
from ophion.errors import OphionError
from ophion.native.executor import AccountOverride, CallRequest, call, create_access_list
from ophion.primitives.types import ZERO_ADDRESS, Address

_BALANCE_OF = bytes.fromhex("70a08231")
_ALLOWANCE = bytes.fromhex("dd62ed3e")
_GAS = 30_000_000
_DEADLINE_S = 5.0


class SlotNotFound(OphionError):
    """Raised when no storage slot determines the result of the token's call."""

    def __init__(self, token: Address, what: str) -> None:
        super().__init__(f"No storage slot of token 0x{token.hex()} decides its {what}")


def balance_change(dev: DevNode, token: Address, account: Address, amount: int) -> list[AccountOverride]:
    """Return the state change that sets the token balance of an account."""
    return _change(dev, token, _BALANCE_OF + account.rjust(32, b"\0"), amount, "balanceOf")


def allowance_change(
    dev: DevNode, token: Address, owner: Address, spender: Address, amount: int
) -> list[AccountOverride]:
    """Return the state change that sets the allowance of a spender."""
    data = _ALLOWANCE + owner.rjust(32, b"\0") + spender.rjust(32, b"\0")
    return _change(dev, token, data, amount, "allowance")


def _change(dev: DevNode, token: Address, data: bytes, amount: int, what: str) -> list[AccountOverride]:
    word = amount.to_bytes(32, "big")
    for address, slot in _read_slots(dev, token, data):
        change = AccountOverride(address=address, state_diff=[(slot, word)])
        if _answer(dev, token, data, [change]) == word:
            return [change]
    raise SlotNotFound(token, what)


def _request(token: Address, data: bytes) -> CallRequest:
    return CallRequest(sender=ZERO_ADDRESS, to=token, gas=_GAS, input=data, check_balance=False, check_base_fee=False)


def _read_slots(dev: DevNode, token: Address, data: bytes) -> list[tuple[Address, bytes]]:
    queries = dev.queries
    entries, _ = create_access_list(queries.head_state, queries.latest.free_env, _request(token, data), [], _DEADLINE_S)
    return [(address, slot) for address, slots in entries for slot in slots]


def _answer(dev: DevNode, token: Address, data: bytes, changes: Sequence[AccountOverride]) -> bytes:
    queries = dev.queries
    outcome = call(queries.head_state, queries.latest.free_env, _request(token, data), list(changes), _DEADLINE_S)
    return outcome.output
