"""Events and effects are values: comparable and immutable."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.events import BlockTimer, RoundTimer, SetTimer, TimerKind


def test_timers_are_identified_by_height_and_round() -> None:
    assert RoundTimer(1, 0) == RoundTimer(1, 0)
    assert RoundTimer(1, 0) != RoundTimer(1, 1)
    assert SetTimer(TimerKind.BLOCK, 1.0, BlockTimer(1)) != SetTimer(TimerKind.BLOCK, 2.0, BlockTimer(1))


def test_effects_cannot_be_changed_after_they_were_ordered() -> None:
    effect = SetTimer(TimerKind.ROUND, 1.0, RoundTimer(1, 0))
    with pytest.raises(AttributeError):
        effect.at = 2.0  # type: ignore[misc]
