"""Tests difficulty formulas. tests/unit/vectors/test_difficulty_test.py runs the public vectors."""

from __future__ import annotations

import pytest

from ophion.chainspec.forks import ForkSchedule, Milestone
from ophion.consensus.difficulty import MIN_DIFFICULTY, difficulty_after, next_difficulty
from tests.unit.consensus.stories import genesis


@pytest.mark.parametrize(
    ("milestone", "elapsed", "has_ommers", "expected"),
    [
        (Milestone.FRONTIER, 12, False, 2_049_000),
        (Milestone.FRONTIER, 13, False, 2_047_000),
        (Milestone.HOMESTEAD, 9, False, 2_049_000),
        (Milestone.HOMESTEAD, 10, False, 2_048_000),
        (Milestone.HOMESTEAD, 10_000, False, 2_048_000 - 99_000),
        (Milestone.BYZANTIUM, 8, False, 2_049_000),
        (Milestone.BYZANTIUM, 8, True, 2_050_000),
        (Milestone.BYZANTIUM, 18, True, 2_048_000),
        (Milestone.GRAY_GLACIER, 9, False, 2_048_000),
    ],
)
def test_difficulty_follows_the_time_between_blocks(
    milestone: Milestone, elapsed: int, has_ommers: bool, expected: int
) -> None:
    fork = ForkSchedule({milestone: 0}).at(0, 0)
    assert difficulty_after(2_048_000, 1000, has_ommers, 10, 1000 + elapsed, fork) == expected


def test_difficulty_has_a_floor() -> None:
    fork = ForkSchedule({}).at(0, 0)
    assert difficulty_after(1, 0, False, 1, 10**6, fork) == MIN_DIFFICULTY


@pytest.mark.parametrize(("number", "bomb"), [(199_999, 0), (200_000, 1), (300_000, 2), (1_000_000, 256)])
def test_the_bomb_doubles_every_hundred_thousand_blocks(number: int, bomb: int) -> None:
    fork = ForkSchedule({Milestone.HOMESTEAD: 0}).at(0, 0)
    assert difficulty_after(2_048_000, 0, False, number, 10, fork) == 2_048_000 + bomb
    later = ForkSchedule({Milestone.BYZANTIUM: 0}).at(0, 0)
    assert difficulty_after(2_048_000, 0, False, number + 3_000_000, 9, later) == 2_048_000 + bomb


def test_a_header_gives_the_same_numbers() -> None:
    parent = genesis({"ethash": {}}, difficulty=2_048_000, timestamp=50).header(bytes(32))
    assert next_difficulty(parent, 51, ForkSchedule({}).at(1, 51)) == 2_049_000
