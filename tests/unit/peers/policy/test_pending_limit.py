from __future__ import annotations

from ophion.peers.policy.addresses import read_subnet
from ophion.peers.policy.pending_limit import PendingLimit


def test_only_allowed_subnets_may_connect() -> None:
    limit: PendingLimit[str] = PendingLimit([read_subnet("127.0.0.0/8")])
    assert limit.admits("127.0.0.9", 0.0, is_known=False)
    assert not limit.admits("10.0.0.1", 0.0, is_known=True)
    assert limit.refused == 1


def test_a_public_address_may_try_once_in_thirty_seconds() -> None:
    limit: PendingLimit[str] = PendingLimit()
    assert limit.admits("8.8.8.8", 0.0, is_known=False)
    assert not limit.admits("8.8.8.8", 29.0, is_known=False)
    assert not limit.admits("8.8.8.8", 58.0, is_known=False)
    assert limit.admits("8.8.8.8", 88.0, is_known=False)


def test_static_peers_and_our_own_networks_may_always_try() -> None:
    limit: PendingLimit[str] = PendingLimit()
    for _ in range(100):
        assert limit.admits("8.8.8.8", 0.0, is_known=True)
        assert limit.admits("192.168.1.2", 0.0, is_known=False)


def test_the_oldest_is_evicted_above_the_limit() -> None:
    limit: PendingLimit[str] = PendingLimit(max_pending=2)
    enter = lambda name: limit.enter(name, "10.0.0.1", is_known=False)  # noqa: E731
    assert enter("a") is None
    assert enter("b") is None
    assert enter("c") == "a"
    limit.leave("b")
    limit.leave("a")
    assert enter("d") is None
    assert len(limit) == 2


def test_a_flood_evicts_itself() -> None:
    limit: PendingLimit[str] = PendingLimit(max_pending=3)
    assert limit.enter("honest", "10.0.0.1", is_known=False) is None
    flood = [limit.enter(f"flood {number}", "10.0.0.66", is_known=False) for number in range(100)]
    assert flood == [None, None, *(f"flood {number}" for number in range(98))]


def test_addresses_of_static_peers_are_evicted_last() -> None:
    limit: PendingLimit[str] = PendingLimit(max_pending=3)
    assert limit.enter("static", "10.0.0.1", is_known=True) is None
    assert limit.enter("static again", "10.0.0.1", is_known=True) is None
    flood = [limit.enter(f"flood {number}", f"10.0.1.{number}", is_known=False) for number in range(100)]
    assert flood == [None, *(f"flood {number}" for number in range(99))]
    assert limit.enter("static once more", "10.0.0.1", is_known=True) == "flood 99"
    assert limit.enter("and more", "10.0.0.1", is_known=True) == "static"


def test_a_flood_from_the_address_of_a_static_peer_leaves_slots_for_others() -> None:
    limit: PendingLimit[str] = PendingLimit()
    for number in range(100):
        limit.enter(f"flood {number}", "10.0.0.1", is_known=True)
    for number in range(10):
        assert limit.enter(f"honest {number}", f"10.0.0.{2 + number}", is_known=False) == f"flood {50 + number}"
    assert limit.waiting("10.0.0.1") == 40


def test_the_address_table_is_bounded() -> None:
    limit: PendingLimit[str] = PendingLimit()
    for number in range(5000):
        limit.admits(f"8.{number >> 8}.{number & 255}.1", 0.0, is_known=False)
    assert len(limit._last_seen) == 4096


def test_pending_connections_by_address() -> None:
    limit: PendingLimit[str] = PendingLimit()
    for name, ip in (("a", "10.0.0.1"), ("b", "10.0.0.1"), ("c", "10.0.0.2")):
        limit.enter(name, ip, is_known=False)
    assert [limit.waiting(f"10.0.0.{number}") for number in (1, 2, 3)] == [2, 1, 0]
