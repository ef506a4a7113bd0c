"""Difficulty of proof of work: the formulas since Frontier, and the difficulty bomb with its delays."""

from __future__ import annotations

from typing import Final

from ophion.chainspec.forks import Fork, Milestone
from ophion.primitives.header import Header
from ophion.primitives.types import EMPTY_OMMERS_HASH

MIN_DIFFICULTY: Final = 131_072
_BOUND_DIVISOR: Final = 2048
_BOMB_PERIOD: Final = 100_000
_FRONTIER_DURATION_S: Final = 13
_HOMESTEAD_STEP_S: Final = 10
_BYZANTIUM_STEP_S: Final = 9
_LARGEST_DROP: Final = -99


def next_difficulty(parent: Header, timestamp: int, fork: Fork) -> int:
    """Return the difficulty of the block after `parent` with this timestamp. `fork` is the fork of the new block."""
    return difficulty_after(
        parent.difficulty,
        parent.timestamp,
        parent.ommers_hash != EMPTY_OMMERS_HASH,
        parent.number + 1,
        timestamp,
        fork,
    )


def difficulty_after(
    parent_difficulty: int, parent_timestamp: int, parent_has_ommers: bool, number: int, timestamp: int, fork: Fork
) -> int:
    """Return the same difficulty as `next_difficulty`, computed from numbers instead of a parent header."""
    elapsed = timestamp - parent_timestamp
    if fork.has(Milestone.BYZANTIUM):
        factor = max((2 if parent_has_ommers else 1) - elapsed // _BYZANTIUM_STEP_S, _LARGEST_DROP)
    elif fork.has(Milestone.HOMESTEAD):
        factor = max(1 - elapsed // _HOMESTEAD_STEP_S, _LARGEST_DROP)
    else:
        factor = 1 if elapsed < _FRONTIER_DURATION_S else -1
    difficulty = max(parent_difficulty + parent_difficulty // _BOUND_DIVISOR * factor, MIN_DIFFICULTY)
    periods = max(number - fork.bomb_delay, 0) // _BOMB_PERIOD
    if periods > 1:
        difficulty += 2 ** (periods - 2)
    return difficulty
