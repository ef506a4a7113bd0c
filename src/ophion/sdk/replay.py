"""`Replay`: a mined transaction, run again under other code, state or gas.

The earlier transactions of its block run first, each in a block of its own on a branch. So the block number that a
transaction sees may differ from the original number.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ophion.sdk import arguments
from ophion.sdk.account import raw_address
from ophion.sdk.backend import CallSpec
from ophion.sdk.call_tree import CallTree
from ophion.sdk.errors import ChainError
from ophion.sdk.html import preformatted

if TYPE_CHECKING:
    from ophion.sdk.chain import Chain


class Replay(Struct, frozen=True):
    """The original run and the repeated run of a transaction."""

    before: CallTree
    """Call tree of the original run."""
    after: CallTree
    """Call tree of the run under other conditions."""
    chain: Chain
    """The branch on which the transaction ran again, in the state after the repeated run."""

    @property
    def differences(self) -> list[str]:
        """Lines of the call trees that differ, as in a unified diff; [] when the runs are the same."""
        old, new = str(self.before).splitlines(), str(self.after).splitlines()
        return [one for one in difflib.ndiff(old, new) if one[0] in "+-"]

    def __str__(self) -> str:
        return "\n".join(self.differences) or "no difference"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformatted(str(self))


def replayed(
    chain: Chain,
    hash: str,
    code: Mapping[Any, bytes | str],
    storage: Mapping[Any, Mapping[int, int]],
    balances: Mapping[Any, int],
    gas: int | None,
) -> Replay:
    """Run a mined transaction again, after the earlier transactions of its block, on a branch that starts before the
    block.
    """
    found: Mapping[str, Any] | None = chain.rpc("eth_getTransactionByHash", hash)
    if found is None or found["blockNumber"] is None:
        raise ChainError(f"There is no mined transaction {hash}.")
    number = int(found["blockNumber"], 16)
    block = chain.block(number)
    branch = chain.fork_at(number - 1)
    branch.time = int(block["timestamp"], 16)
    for earlier in block["transactions"]:
        if earlier["hash"] == hash:
            break
        branch.impersonate(earlier["from"])
        branch.backend.send(_spec(earlier))
    for address, bytecode in code.items():
        branch.set_code(address, bytecode)
    for address, slots in storage.items():
        for slot, value in arguments.mapping("storage", slots).items():
            branch.set_storage(address, slot, value)
    for address, wei in balances.items():
        branch.set_balance(address, wei)
    branch.impersonate(found["from"])
    sent = branch.backend.send(_spec(found, gas))
    return Replay(chain.trace(hash), branch.trace(sent.hash), branch)


def _spec(fields: Mapping[str, Any], gas: int | None = None) -> CallSpec:
    return CallSpec(
        sender=raw_address(fields["from"]),
        to=None if fields["to"] is None else raw_address(fields["to"]),
        data=bytes.fromhex(fields["input"][2:]),
        value=int(fields["value"], 16),
        gas=int(fields["gas"], 16) if gas is None else gas,
    )
