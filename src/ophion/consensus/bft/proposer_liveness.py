"""Tracks absent proposers so that their rounds are skipped instead of timing out.

An absent proposer costs a full timeout in its first round. After that, each validator skips the rounds of that
proposer: it requests the next round when the round begins (round 0: when the block is due). Requesting a later round is
always allowed, so safety does not change. A validator skipped by mistake counts as present again after its next
message, direct or relayed. Other clients only see an early round change.

A validator whose connection ended also counts as absent, until it reconnects or one of its messages arrives. So a
killed process is detected immediately. Validators that were never connected count as absent only after a missed round.

If the present validators are fewer than a quorum, no proposer is skipped, because skipping would only raise the
timeouts faster.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address

_MAX_GONE: Final = 1024
"""Maximum number of remembered disconnected peers, including peers that are not validators."""


class ProposerLiveness:
    """Records the last message of each validator and which proposers are skipped."""

    __slots__ = ("_gone", "_missed", "passes_over", "received_at")

    def __init__(self, passes_over: bool) -> None:
        self.passes_over = passes_over
        """Whether rounds of absent proposers are skipped; False disables this feature."""
        self.received_at: dict[Address, float] = {}
        """Time of the last new message of each validator, direct or relayed."""
        self._missed: set[Address] = set()
        self._gone: set[Address] = set()

    def message_received(self, author: Address, now: float) -> None:
        """Record a new message of a validator, direct or relayed."""
        self.received_at[author] = now
        self._missed.discard(author)
        self._gone.discard(author)

    def missed_turn(self, proposer: Address, since: float) -> None:
        """Mark a proposer without a proposal as absent, unless it sent a message since the round began (`since`)."""
        if self.received_at.get(proposer, since - 1.0) < since:
            self._missed.add(proposer)

    def connected(self, peer: Address) -> None:
        """Record that a peer has connected. A validator that missed a round stays absent until it sends a message."""
        self._gone.discard(peer)

    def disconnected(self, peer: Address) -> None:
        """Record that the last connection to a peer has ended."""
        if len(self._gone) < _MAX_GONE:
            self._gone.add(peer)

    def absent(self, validator_set: ValidatorSet, me: Address) -> frozenset[Address]:
        """Return the absent validators: none if rounds are not skipped, or if the other validators are fewer than a
        quorum.
        """
        if not self.passes_over or not (self._missed or self._gone):
            return frozenset()
        found = validator_set.members & (self._missed | self._gone) - {me}
        return found if len(validator_set) - len(found) >= validator_set.quorum else frozenset()

    def awaited_round(self, number: int, validator_set: ValidatorSet, me: Address) -> int:
        """Return the first round from `number` on whose proposer is not absent."""
        absent = self.absent(validator_set, me)
        while absent and validator_set.proposer(number) in absent:
            number += 1
        return number

    def keep(self, validators: Collection[Address]) -> None:
        """Forget all addresses except these validators."""
        self.received_at = {author: at for author, at in self.received_at.items() if author in validators}
        self._missed.intersection_update(validators)
        self._gone.intersection_update(validators)

    def __len__(self) -> int:
        return len(self.received_at)
