"""Whose turn is not worth waiting for: validators that missed one, or hung up, and have not been heard since.

The first turn of a dead proposer costs a whole timeout, as everywhere. After that, each of us asks for the next round
as soon as such a turn begins: when the block is due in round 0, at once in later ones. Asking for a later round is
allowed at any moment, so nothing about safety changes; a validator that is passed over by mistake is heard of by its
next message, from whoever relays it, and has its turn back. Other clients just see a round change that comes early.

A validator whose connection broke counts as absent too, until it is back or something of it arrives: a process that was
killed is known to be gone at once. Who never was connected is judged by its turns alone.

Where so many are absent that the rest is no quorum, no proposer is passed over: rounds would only race to their longest
timeout while everybody waits for the missing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address

_MAX_GONE: Final = 1024
"""Peers need not be validators, and while a height is not decided any number of them may come and go."""


class ProposerLiveness:
    """When each validator was heard last, and who is passed over."""

    __slots__ = ("_gone", "_missed", "heard_at", "passes_over")

    def __init__(self, passes_over: bool) -> None:
        self.passes_over = passes_over
        """Whether absent proposers are passed over at all."""
        self.heard_at: dict[Address, float] = {}
        """When something new of each validator has come in last, directly or relayed."""
        self._missed: set[Address] = set()
        self._gone: set[Address] = set()

    def heard(self, author: Address, now: float) -> None:
        """Something new of a validator has come in, from whomever."""
        self.heard_at[author] = now
        self._missed.discard(author)
        self._gone.discard(author)

    def missed_turn(self, proposer: Address, since: float) -> None:
        """A turn that began at `since` has ended without a proposal."""
        if self.heard_at.get(proposer, since - 1.0) < since:
            self._missed.add(proposer)

    def connected(self, peer: Address) -> None:
        """A connection stands. Who has missed a turn has to say something, too."""
        self._gone.discard(peer)

    def disconnected(self, peer: Address) -> None:
        """A connection has ended."""
        if len(self._gone) < _MAX_GONE:
            self._gone.add(peer)

    def absent(self, validator_set: ValidatorSet, me: Address) -> frozenset[Address]:
        """Members that are passed over, as far as the others can do without them."""
        if not self.passes_over or not (self._missed or self._gone):
            return frozenset()
        found = validator_set.members & (self._missed | self._gone) - {me}
        return found if len(validator_set) - len(found) >= validator_set.quorum else frozenset()

    def keep(self, validators: Collection[Address]) -> None:
        """Forget all other addresses."""
        self.heard_at = {author: at for author, at in self.heard_at.items() if author in validators}
        self._missed.intersection_update(validators)
        self._gone.intersection_update(validators)

    def __len__(self) -> int:
        return len(self.heard_at)
