"""Keeps a validator that lost its disk from voting twice: the validator skips the height at which it restarts.

The validator does not know its earlier votes. A vote at a height needs the parent block, so the validator cannot have
voted at a height whose parent was produced after the restart. Until such a parent arrives, the validator only follows.
If the parent was proposed before the restart and decided after it, the validator may have had the block before the
restart, so the validator skips this height too. At genesis the validator may vote, because new networks begin there.
The first vote is stored and ends this state.

Without this validator, the other validators may lack a quorum, for example after the network has added a validator. If
only this vote is missing, the validator joins after a while, in a round that no other validator has reached. A lost
vote in that round or a later round would have required round changes of a quorum. Every quorum includes a validator
whose messages have arrived, and none of these validators has reached that round, so no such vote exists. If a block was
committed, round changes of these validators carry its proof.

If a whole network has lost its disks, no validator sends anything and no vote can be contradicted. After a few maximum
timeouts the validator joins the connected validators.
"""

from __future__ import annotations

from typing import Final

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import Head
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address

_CLOCKS_APART_S: Final = 2.0
"""Maximum seconds by which a block timestamp may be ahead of this node's clock, plus a margin."""
_WAIT_TIMEOUTS: Final = 2.0
"""Time to wait if only the vote of this validator is missing for a quorum, as a multiple of the timeout of round 0."""
_WAIT_TIMEOUTS_WITH_QUORUM: Final = 4.0
"""Time to wait if the other validators form a quorum, as a multiple of the timeout of the latest round. A quorum may
make no progress, because some of its validators may be dishonest.
"""
_LAST_RESORT: Final = 5.0
"""Time to wait if too few validators send messages, as a multiple of the maximum round timeout."""


_ROUNDS_APART: Final = 4
"""Maximum number of rounds by which one honest validator is ahead of another."""


class LostStateRecovery:
    """State of a validator that has no stored votes, until the validator may vote."""

    def __init__(self, came_back_at: float | None = None) -> None:
        """Create the state. `came_back_at` is the wall time at which this node started. If None, the time of the first
        `enter` counts.
        """
        self._came_back_at = came_back_at
        self._entered_at = 0.0
        self._height = 0
        self._reached: dict[Address, int] = {}

    def enter(self, validator_set: ValidatorSet, head: Head, now: float) -> bool:
        """Begin a height. Returns whether the validator may vote."""
        if self._came_back_at is None:
            self._came_back_at = now
        self._entered_at = now
        self._height = validator_set.height
        self._reached = {}
        return head.timestamp > self._came_back_at + _CLOCKS_APART_S

    def holds(self, validator_set: ValidatorSet, head: Head) -> bool:
        """Whether this validator may have voted at this height before it lost its stored votes."""
        return head.number > 0 and len(validator_set) > 1

    def message_received(self, author: Address, height: int, round_number: int) -> None:
        """Record a message of a validator."""
        if height == self._height:
            self._reached[author] = max(round_number, self._reached.get(author, 0))

    def next_look(self, timing: RoundTiming, now: float) -> float:
        """Return the wall time of the next check whether the other validators make progress."""
        return now + _WAIT_TIMEOUTS * timing.timeout(0)

    def joins(self, validator_set: ValidatorSet, timing: RoundTiming, now: float) -> DurableVotes | None:
        """Return `DurableVotes` with the round to join, if the other validators make no progress. Returns None while
        this validator must wait.
        """
        latest = self._latest_round(validator_set.faults)
        if len(self._reached) >= validator_set.quorum:
            wait_s = _WAIT_TIMEOUTS_WITH_QUORUM * timing.timeout(latest)
        elif len(self._reached) >= (validator_set.quorum - 1 if validator_set.faults else len(validator_set) - 1):
            wait_s = _WAIT_TIMEOUTS * timing.timeout(0)
        else:
            wait_s = _LAST_RESORT * timing.max_timeout_s
        return DurableVotes(validator_set.height, latest + 1) if now >= self._entered_at + wait_s else None

    def _latest_round(self, faults: int) -> int:
        """Return the latest round that other validators have reached. Ignores rounds far above the rounds of f + 1
        validators.
        """
        rounds = sorted(self._reached.values(), reverse=True)
        sure = rounds[faults] if len(rounds) > faults else 0
        return max((number for number in rounds if number <= sure + _ROUNDS_APART), default=0)
