"""Who decides one height: the validators in force, how many of them are enough, and whose turn it is.

The arithmetic is the whole safety margin of the protocol, so it stands alone (consensus.md 2.5, 2.6). With n
validators of which at most f = floor((n-1)/3) misbehave, two quorums Q = ceil(2n/3) share at least 2Q - n >= f + 1
validators, so at least one honest validator belongs to both: what one quorum has decided, the next quorum hears of.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from msgspec import Struct

from ophion.primitives.types import Address


def quorum_of(count: int) -> int:
    """Smallest number of validators that decides: ceil(2n/3)."""
    return (2 * count + 2) // 3


def tolerated_faults(count: int) -> int:
    """How many misbehaving validators do no harm: floor((n-1)/3)."""
    return max(0, (count - 1) // 3)


class ValidatorSet(Struct, frozen=True):
    """The validators of one height. Make it with `ValidatorSet.of`."""

    height: int
    validators: tuple[Address, ...]
    """In ascending order, which is the order of turns."""
    members: frozenset[Address]
    quorum: int
    faults: int
    """f: how many of them may misbehave."""
    first_turn: int
    """Index of the proposer of round 0."""

    @staticmethod
    def of(height: int, validators: Iterable[Address], previous_builder: Address) -> ValidatorSet:
        """The validator set of `height`, given the coinbase of the block before it.

        The turn goes to the validator after the previous builder. When that one is no longer a validator (or never
        was: genesis), it goes to the first validator above its address, without skipping any (consensus.md 2.5).
        """
        ordered = tuple(sorted(set(validators)))
        count = len(ordered)
        # bisect_right passes over the builder itself when it is a member, and stops at the next greater otherwise
        first = bisect_right(ordered, previous_builder) % count if count else 0
        return ValidatorSet(height, ordered, frozenset(ordered), quorum_of(count), tolerated_faults(count), first)

    def proposer(self, round_number: int) -> Address:
        """Whose turn it is in that round."""
        return self.validators[(self.first_turn + round_number) % len(self.validators)]

    def __len__(self) -> int:
        return len(self.validators)
