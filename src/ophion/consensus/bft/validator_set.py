"""The validators of one height, the quorum size and the order of proposers.

Of n validators, at most f = floor((n-1)/3) may misbehave. Two quorums of Q = ceil(2n/3) validators share at least 2Q -
n >= f + 1 validators (consensus.md 2.5, 2.6). At least one honest validator belongs to both quorums, so every quorum
includes a validator that knows the decision of the previous quorum.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from msgspec import Struct

from ophion.primitives.types import Address


def quorum_of(count: int) -> int:
    """Return the quorum of `count` validators: ceil(2n/3)."""
    return (2 * count + 2) // 3


def tolerated_faults(count: int) -> int:
    """Return the number of misbehaving validators that are tolerated: floor((n-1)/3)."""
    return max(0, (count - 1) // 3)


class ValidatorSet(Struct, frozen=True):
    """The validators of one height. `ValidatorSet.of` creates it."""

    height: int
    validators: tuple[Address, ...]
    """Addresses in ascending order, which is also the order of proposers."""
    members: frozenset[Address]
    quorum: int
    faults: int
    """f: the number of validators that may misbehave."""
    first_turn: int
    """Index of the proposer of round 0."""

    @staticmethod
    def of(height: int, validators: Iterable[Address], previous_builder: Address) -> ValidatorSet:
        """Return the validator set of `height`, given the coinbase of the previous block.

        The proposer is the validator after the previous builder. If the builder is no longer a validator, the proposer
        is the first validator above the builder's address (consensus.md 2.5).
        """
        ordered = tuple(sorted(set(validators)))
        count = len(ordered)
        # bisect_right finds the next greater address even if the builder is no validator
        first = bisect_right(ordered, previous_builder) % count if count else 0
        return ValidatorSet(height, ordered, frozenset(ordered), quorum_of(count), tolerated_faults(count), first)

    def proposer(self, round_number: int) -> Address:
        """Return the proposer of a round."""
        return self.validators[(self.first_turn + round_number) % len(self.validators)]

    def __len__(self) -> int:
        return len(self.validators)
