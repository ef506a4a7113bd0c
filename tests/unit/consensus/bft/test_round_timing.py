"""Tests timeouts that double up to a cap."""

from __future__ import annotations

from ophion.consensus.bft.round_timing import RoundTiming


def test_rounds_double_up_to_the_cap() -> None:
    timing = RoundTiming(2.0, 4.0, 30.0)
    assert [timing.timeout(number) for number in range(5)] == [4.0, 8.0, 16.0, 30.0, 30.0]
    assert [timing.is_capped(number) for number in range(5)] == [False, False, False, True, True]
    assert timing.timeout(2**31) == 30.0


def test_the_cap_never_shortens_the_first_round() -> None:
    timing = RoundTiming(1.0, 90.0, 60.0)
    assert timing.timeout(0) == timing.timeout(7) == 90.0
    assert timing.is_capped(0)


def test_a_block_is_due_a_period_after_its_parent() -> None:
    assert RoundTiming(5.0, 10.0).block_due(100, 50.0) == 105.0
    assert RoundTiming(0.25, 10.0).block_due(100, 50.0) == 50.25


def test_a_period_with_a_fraction_is_counted_from_the_proposal_of_the_parent() -> None:
    timing = RoundTiming(0.25, 10.0)
    assert timing.block_due(100, 50.0, 49.875) == 50.125
    assert timing.block_due(100, 50.0, 49.0) == 50.0
    assert RoundTiming(1.5, 10.0).block_due(100, 50.0, 49.5) == 51.0
    assert RoundTiming(1.0, 10.0).block_due(100, 50.0, 49.5) == 101.0


def test_a_clock_that_was_set_back_delays_a_block_by_one_period_at_most() -> None:
    assert RoundTiming(0.25, 10.0).block_due(100, 50.0, 3650.0) == 50.25


def test_timestamps_below_a_second_never_lie_in_the_future() -> None:
    assert [RoundTiming(0.2, 1.0).timestamp(at) for at in (9.999, 10.0, 10.8)] == [9, 10, 10]
    assert [RoundTiming(1.0, 2.0).timestamp(at) for at in (9.999, 10.0, 10.8)] == [10, 10, 11]


def test_i_18_a_time_out_below_the_period_is_warned_about() -> None:
    (warning,) = RoundTiming(5.0, 5.0).warnings(starts_on_block_timer=False)
    assert "requesttimeoutseconds (5)" in warning
    assert RoundTiming(5.0, 5.0).warnings(starts_on_block_timer=True) == ()
    assert RoundTiming(5.0, 6.0).warnings(starts_on_block_timer=False) == ()


def test_an_empty_block_period_beyond_the_round_is_warned_about() -> None:
    (warning,) = RoundTiming(1.0, 4.0, empty_period_s=5.0).warnings(starts_on_block_timer=True)
    assert "emptyblockperiodseconds (5)" in warning
