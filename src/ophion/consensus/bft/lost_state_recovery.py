"""A validator that lost its disk does not vote twice: it waits out the height it comes back to.

It cannot know what it has promised. A vote at a height needs the block before it, so it is free of promises at every
height whose parent was made after it came back; until it sees such a block it only follows. (Having watched a height
being decided proves less: it may have been the first to have that block, and have voted on top of it.) At genesis it
takes part at once, since new networks begin there; after its first vote its durable votes exist again.

The others may lack a quorum without it: a member that was voted in while it was away is needed at once. So where just
its vote is missing it joins them after a while, in a round that none of them has reached. Voting in a round takes the
requests of a quorum for it; the validators that have been heard share a member with that quorum, so no vote of a
forgotten past can be in that round or a later one. The proof of what was committed travels in their round changes.

When a whole network has lost its disks, no validator speaks and no vote is left to contradict. After some of the
longest timeouts it joins the validators that are connected.
"""

from __future__ import annotations

from typing import Final

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import Head
from ophion.consensus.bft.timeouts import RoundTiming
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address

_CLOCKS_APART_S: Final = 2.0
"""How far a timestamp may be ahead of the clock of this node, and a little more: blocks further ahead are refused."""
_PATIENCE: Final = 2.0
"""Request timeouts to wait where just our vote is missing."""
_PATIENCE_WITH_QUORUM: Final = 4.0
"""Time-outs of their round to wait where the others are a quorum, though perhaps not an honest one."""
_LAST_RESORT: Final = 5.0
"""Longest timeouts after which no message of others is expected any more."""


_ROUNDS_APART: Final = 4
"""How far honest validators may be ahead of others."""


class LostStateRecovery:
    """What a validator without memory watches until it may vote."""

    def __init__(self) -> None:
        self._came_back_at: float | None = None
        self._entered_at = 0.0
        self._height = 0
        self._reached: dict[Address, int] = {}

    def enter(self, validator_set: ValidatorSet, head: Head, now: float) -> bool:
        """A height begins; whether the waiting is over."""
        if self._came_back_at is None:
            self._came_back_at = now
        self._entered_at = now
        self._height = validator_set.height
        self._reached = {}
        return head.timestamp > self._came_back_at + _CLOCKS_APART_S

    def holds(self, validator_set: ValidatorSet, head: Head) -> bool:
        """Whether another validator may hold an earlier vote of ours at this height."""
        return head.number > 0 and len(validator_set) > 1

    def heard(self, author: Address, height: int, round_number: int) -> None:
        """A validator has spoken."""
        if height == self._height:
            self._reached[author] = max(round_number, self._reached.get(author, 0))

    def next_look(self, timing: RoundTiming, now: float) -> float:
        """When to look again whether the others get on."""
        return now + _PATIENCE * timing.timeout(0)

    def joins(self, validator_set: ValidatorSet, timing: RoundTiming, now: float) -> DurableVotes | None:
        """Where to begin after all, when nothing happens though enough others are here; None: not yet."""
        latest = self._latest_round(validator_set.faults)
        if len(self._reached) >= validator_set.quorum:
            patience_s = _PATIENCE_WITH_QUORUM * timing.timeout(latest)
        elif len(self._reached) >= (validator_set.quorum - 1 if validator_set.faults else len(validator_set) - 1):
            patience_s = _PATIENCE * timing.timeout(0)
        else:
            patience_s = _LAST_RESORT * timing.max_timeout_s
        return DurableVotes(validator_set.height, latest + 1) if now >= self._entered_at + patience_s else None

    def _latest_round(self, faults: int) -> int:
        """The latest round that others are in, as far as they can be believed: f of them may say anything."""
        rounds = sorted(self._reached.values(), reverse=True)
        sure = rounds[faults] if len(rounds) > faults else 0
        return max((number for number in rounds if number <= sure + _ROUNDS_APART), default=0)
