"""Tests when a validator may sign, depending on the heights of its peers."""

from __future__ import annotations

from ophion.primitives.types import Address
from ophion.producer.peer_height_guard import MAX_START_WAIT_S, PeerHeightGuard

ME, FIRST, SECOND, THIRD, OUTSIDER = (bytes([number]) * 20 for number in range(1, 6))
VALIDATORS = (ME, FIRST, SECOND, THIRD)
TIMEOUT_S = 4.0


class Watched:
    """A guard, and the reports of its peers."""

    def __init__(self) -> None:
        self.heights: dict[Address, int] = {}
        self.connecting: list[Address] = []
        self.guard = PeerHeightGuard(ME)
        self.guard.watch(lambda: self.heights.items(), connecting=lambda: self.connecting)

    def begins_at(self, head: int, now: float, validators: tuple[Address, ...] = VALIDATORS) -> float:
        return self.guard.begins_at(head, validators, 2, TIMEOUT_S, now)


def settled() -> Watched:
    watched = Watched()
    watched.heights = {FIRST: 0, SECOND: 0}
    assert watched.begins_at(0, 0.0) == 0.0
    return watched


def test_without_peers_to_watch_it_signs_at_once() -> None:
    assert PeerHeightGuard(ME).begins_at(0, VALIDATORS, 2, TIMEOUT_S, 0.0) == 0.0


def test_a_lone_validator_signs_at_once() -> None:
    assert Watched().begins_at(0, 0.0, (ME,)) == 0.0


def test_after_the_start_it_waits_for_a_quorum_of_heads_or_one_timeout() -> None:
    watched = Watched()
    assert watched.begins_at(0, 10.0) == 14.0
    watched.heights[FIRST] = 0
    assert watched.begins_at(0, 11.0) == 14.0
    watched.heights[SECOND] = 0
    assert watched.begins_at(0, 12.0) == 0.0


def test_after_the_start_no_validator_is_awaited_longer_than_one_timeout() -> None:
    watched = Watched()
    assert watched.begins_at(0, 10.0) == 14.0
    assert watched.begins_at(0, 14.0) == 0.0
    assert watched.begins_at(0, 14.1) == 0.0


def test_after_the_start_the_wait_lasts_while_validators_connect() -> None:
    watched = Watched()
    watched.heights, watched.connecting = {FIRST: 0}, [SECOND]
    assert watched.begins_at(0, 10.0) == 14.0
    assert watched.begins_at(0, 13.9) == 17.9, "on a busy machine, a handshake takes longer than a round"
    watched.heights[SECOND] = 4
    watched.connecting.clear()
    assert watched.begins_at(0, 16.0) == 17.9
    assert watched.begins_at(4, 17.0) == 0.0


def test_validators_at_one_height_do_not_wait_for_a_validator_that_connects() -> None:
    watched = Watched()
    watched.heights, watched.connecting = {FIRST: 0, SECOND: 0}, [THIRD]
    assert watched.begins_at(0, 10.0) == 0.0


def test_other_nodes_that_connect_do_not_prolong_the_wait() -> None:
    watched = Watched()
    watched.connecting = [OUTSIDER, ME]
    assert watched.begins_at(0, 10.0) == 14.0
    assert watched.begins_at(0, 14.0) == 0.0


def test_the_wait_for_validators_that_connect_is_limited() -> None:
    watched = Watched()
    watched.connecting = [SECOND]
    now = 10.0
    while watched.begins_at(0, now) > now:
        now += 0.5
    assert MAX_START_WAIT_S <= now - 10.0 <= MAX_START_WAIT_S + TIMEOUT_S
    assert watched.begins_at(1, now + 1) == 0.0


def test_a_clock_that_is_set_back_does_not_prolong_the_wait() -> None:
    watched = Watched()
    watched.heights = {FIRST: 9}
    assert watched.begins_at(0, 5000.0) == 5004.0
    assert watched.begins_at(0, 10.0) == 14.0
    assert watched.begins_at(0, 14.0) == 0.0
    watched = Watched()
    watched.connecting = [SECOND]
    assert watched.begins_at(0, 5000.0) == 5004.0
    now = 10.0
    while watched.begins_at(0, now) > now:
        now += 0.5
    assert now - 10.0 <= MAX_START_WAIT_S + TIMEOUT_S


def test_after_the_start_nothing_waits_for_validators_that_connect() -> None:
    watched = settled()
    watched.connecting = [THIRD]
    watched.heights = {}
    assert watched.begins_at(0, 100.0) == 0.0


def test_each_block_of_a_peer_that_is_ahead_renews_the_timeout() -> None:
    watched = Watched()
    watched.heights = {OUTSIDER: 90}
    assert watched.begins_at(0, 10.0) == 14.0
    assert watched.begins_at(50, 13.0) == 17.0
    watched.heights |= {FIRST: 90, SECOND: 90}
    assert watched.begins_at(89, 16.0) == 20.0
    assert watched.begins_at(90, 16.1) == 0.0


def test_later_only_validators_count() -> None:
    watched = settled()
    watched.heights[OUTSIDER] = 2**40
    assert watched.begins_at(0, 1.0) == 0.0
    watched.heights[THIRD] = 1
    assert watched.begins_at(0, 2.0) == 6.0


def test_a_validator_that_reports_what_it_does_not_have_delays_one_block() -> None:
    watched = settled()
    watched.heights[THIRD] = 2**40
    assert watched.begins_at(5, 20.0) == 24.0
    assert watched.begins_at(5, 24.0) == 0.0
    assert watched.begins_at(6, 25.0) == 0.0
    watched.heights[FIRST] = 8
    assert watched.begins_at(6, 26.0) == 30.0
