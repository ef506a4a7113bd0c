"""`ProposerClocks`: how far the clock of each validator differs from this node's clock, computed from its proposals."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from ophion.consensus.bft.messages import Proposal
from ophion.primitives import rlp
from ophion.primitives.header import Header
from ophion.primitives.types import Address

_MAX_CLOCKS: Final = 256
"""Limit of validators whose clock offset is remembered."""


class ProposerClocks:
    """Records how far the clock of each validator differs from this node's clock."""

    def __init__(self) -> None:
        self._leads: dict[Address, float] = {}

    def lead_of(self, validator: Address) -> float | None:
        """Return the seconds by which a validator's clock is ahead, or None if the offset is unknown."""
        return self._leads.get(validator)

    def record(self, proposal: Proposal, validators: Container[Address], now: float) -> None:
        """Compute the clock offset of a proposer. A block of round 0 is proposed exactly when it is due, so the time at
        which the proposal arrives shows the offset.
        """
        is_signed = proposal.signed.digest == proposal.block.digest
        if proposal.round == 0 and is_signed and proposal.author in validators:
            block = proposal.block.encoded
            start = rlp.head(block, 0)[1]
            header = Header.decode(block[start : rlp.item_end(block, start)])
            self._leads[proposal.author] = header.timestamp - now
            if len(self._leads) > _MAX_CLOCKS:
                del self._leads[next(iter(self._leads))]
