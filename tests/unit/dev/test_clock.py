"""Tests the clock of a development chain."""

from __future__ import annotations

import pytest

from ophion.dev.clock import DevClock, TimestampTooLow
from ophion.runtime.clock import ManualClock


def test_it_follows_the_wall_clock_and_an_offset() -> None:
    wall = ManualClock(wall=1000.0)
    clock = DevClock(wall, last=900)
    assert clock.now() == 1000
    assert clock.increase(50) == 50
    wall.advance(5)
    assert clock.now() == 1055


def test_a_timestamp_is_for_one_block_and_later_ones_follow_it() -> None:
    wall = ManualClock(wall=1000.0)
    clock = DevClock(wall, last=900)
    clock.set_next(5000)
    assert clock.now() == 5000
    assert clock.now() == 5000, "asking does not use it up"
    clock.on_block(5000)
    wall.advance(3)
    assert clock.now() == 5003


def test_a_timestamp_before_the_head_is_refused() -> None:
    clock = DevClock(ManualClock(wall=1000.0), last=900)
    with pytest.raises(TimestampTooLow):
        clock.set_next(899)
    clock.set_next(900)
    with pytest.raises(TimestampTooLow):
        clock.set_next(900, allow_equal=False)


def test_an_interval_counts_from_the_head() -> None:
    clock = DevClock(ManualClock(wall=1000.0), last=900)
    clock.interval = 7
    assert clock.now() == 907
    clock.on_block(907)
    assert clock.now() == 914


def test_a_clock_behind_the_head_makes_the_next_second() -> None:
    wall = ManualClock(wall=1000.5)
    clock = DevClock(wall, last=1000)
    assert clock.now() == 1000.5
    clock.interval = 86_400
    clock.on_block(int(clock.now()))
    clock.interval = None
    assert clock.now() == 1000 + 86_400 + 1
    clock.on_block(int(clock.now()))
    assert clock.now() == 1000 + 86_400 + 2


def test_time_goes_on_from_a_snapshot_after_a_revert() -> None:
    wall = ManualClock(wall=1000.0)
    clock = DevClock(wall, last=900)
    clock.increase(100)
    state = clock.state()
    wall.advance(500)
    clock.increase(10_000)
    clock.restore(state, 900)
    assert clock.now() == 1100
    wall.advance(1)
    assert clock.now() == 1101


def test_the_present_can_be_set() -> None:
    clock = DevClock(ManualClock(wall=1000.0), last=900)
    assert clock.set_time(3000) == 2000
    assert clock.now() == 3000
    assert clock.set_time(2000) == 0
