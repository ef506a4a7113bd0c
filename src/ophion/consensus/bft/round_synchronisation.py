"""`RoundSynchronisation`: which rounds the other validators have reached, and whether a quorum is in the current round.

Timeouts double with each round up to the maximum timeout (the cap). The doubling brings validators into one round, as
other clients expect. At the cap all rounds have equal length, so validators could follow each other forever, one always
slightly ahead. At the cap the timeout of a round therefore starts only when a quorum has reached the round. Until then
this validator stays and repeats its round change. If this validator has prepared a block in the round, a quorum has
voted in the round. So the timeout runs, and the round change after it carries the proof of the block.
"""

from __future__ import annotations

from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address


class RoundSynchronisation:
    """Rounds of the other validators at one height."""

    def __init__(self, validator_set: ValidatorSet, timing: RoundTiming) -> None:
        self.reached: dict[Address, int] = {}
        """Highest round in which each validator has sent a message at this height."""
        self.is_complete = True
        """Whether the timeout of the current round runs. False while the round waits for a quorum."""
        self._validator_set = validator_set
        self._timing = timing

    def start(self, round_number: int) -> None:
        """Begin a round. At the timeout cap, this validator stays in the round until a quorum has been there for a
        whole timeout.
        """
        is_capped = round_number > 0 and self._timing.is_capped(round_number)
        self.is_complete = not is_capped or self._is_quorum_in(round_number)

    def record_round(self, author: Address, round_number: int, current: int) -> bool:
        """Record the round of a validator. Returns True if the current round waited for a quorum and now has one."""
        if self.reached.get(author, -1) >= round_number:
            return False
        self.reached[author] = round_number
        if self.is_complete or not self._is_quorum_in(current):
            return False
        self.is_complete = True
        return True

    def _is_quorum_in(self, round_number: int) -> bool:
        here = sum(1 for number in self.reached.values() if number >= round_number)
        return here + 1 >= self._validator_set.quorum
