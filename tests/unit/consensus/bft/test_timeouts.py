"""Timeouts that double up to a cap."""

from __future__ import annotations

from ophion.consensus.bft.timeouts import RoundTiming


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


def test_i_18_a_time_out_below_the_period_is_warned_about() -> None:
    (warning,) = RoundTiming(5.0, 5.0).warnings(starts_on_block_timer=False)
    assert "requesttimeoutseconds (5)" in warning
    assert RoundTiming(5.0, 5.0).warnings(starts_on_block_timer=True) == ()
    assert RoundTiming(5.0, 6.0).warnings(starts_on_block_timer=False) == ()


def test_an_empty_block_period_beyond_the_round_is_warned_about() -> None:
    (warning,) = RoundTiming(1.0, 4.0, empty_period_s=5.0).warnings(starts_on_block_timer=True)
    assert "xemptyblockperiodseconds (5)" in warning
