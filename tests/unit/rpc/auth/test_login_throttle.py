"""Tests waiting times after failed logins."""

from __future__ import annotations

import pytest

from ophion.rpc.auth import login_throttle
from ophion.rpc.auth.login_throttle import FREE, LONGEST_S, LoginThrottle
from ophion.runtime.clock import ManualClock

HERE, THERE = "192.0.2.1", "192.0.2.2"


def guessed(clock: ManualClock, times: int = FREE) -> LoginThrottle:
    """Return a throttle after some failed logins."""
    found = LoginThrottle(clock.monotonic)
    for _ in range(times):
        found.record_attempt(HERE, "ali")
    return found


def test_some_attempts_cost_nothing_and_then_each_pause_is_twice_as_long() -> None:
    clock = ManualClock()
    seen = guessed(clock, FREE - 1)
    assert seen.pause_s(HERE, "ali") == 0
    pauses = []
    for _ in range(9):
        seen.record_attempt(HERE, "ali")
        pauses.append(seen.pause_s(HERE, "ali"))
        clock.advance(pauses[-1])
        assert seen.pause_s(HERE, "ali") == 0
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 64, 64]
    assert max(pauses) == LONGEST_S


def test_a_pause_concerns_one_name_on_one_machine() -> None:
    seen = guessed(ManualClock())
    assert seen.pause_s(HERE, "ali") > 0
    assert seen.pause_s(THERE, "ali") == 0
    assert seen.pause_s(HERE, "bob") == 0


@pytest.mark.parametrize(
    ("address", "is_same"),
    [
        ("2001:db8:1:2:ffff::1", True),
        ("2001:db8:1:2::1%eth0", True),
        ("2001:db8:1:3::1", False),
        ("192.0.2.1", False),
    ],
)
def test_a_network_of_addresses_counts_as_one_client(address: str, is_same: bool) -> None:
    seen = LoginThrottle(ManualClock().monotonic)
    for _ in range(FREE):
        seen.record_attempt("2001:db8:1:2::9", "ali")
    assert (seen.pause_s(address, "ali") > 0) is is_same


def test_an_address_in_both_forms_is_one_machine() -> None:
    assert guessed(ManualClock()).pause_s(f"::ffff:{HERE}", "ali") > 0


def test_a_token_ends_the_count() -> None:
    seen = guessed(ManualClock())
    seen.succeeded(HERE, "ali")
    assert seen.pause_s(HERE, "ali") == 0
    assert seen.rank(HERE, "ali") < seen.rank(HERE, "bob") == 0


def test_machines_that_try_much_come_last() -> None:
    seen = guessed(ManualClock())
    assert seen.rank(THERE, "ali") < seen.rank(HERE, "bob") == FREE


def test_after_some_quiet_it_is_as_if_there_had_been_nothing() -> None:
    clock = ManualClock()
    seen = guessed(clock, 2 * FREE)
    clock.advance(901)
    assert seen.pause_s(HERE, "ali") == 0
    assert seen.rank(HERE, "ali") == 0


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_throttle, "_MAX_RECORDS", 10)
    seen = guessed(ManualClock())
    for number in range(100):
        seen.record_attempt(THERE, f"{number}" * 4096)
    assert len(seen) == 10
    assert all(name is None or len(name) <= 64 for _, name in seen._records)
