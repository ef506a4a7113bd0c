from __future__ import annotations

from ophion.peers.policy.addresses import read_subnet
from ophion.peers.policy.pending_limit import PendingLimit


def test_only_allowed_subnets_may_knock() -> None:
    doorway: PendingLimit[str] = PendingLimit([read_subnet("127.0.0.0/8")])
    assert doorway.admits("127.0.0.9", 0.0, is_known=False)
    assert not doorway.admits("10.0.0.1", 0.0, is_known=True)
    assert doorway.refused == 1


def test_a_public_address_may_try_once_in_thirty_seconds() -> None:
    doorway: PendingLimit[str] = PendingLimit()
    assert doorway.admits("8.8.8.8", 0.0, is_known=False)
    assert not doorway.admits("8.8.8.8", 29.0, is_known=False)
    assert not doorway.admits("8.8.8.8", 58.0, is_known=False)
    assert doorway.admits("8.8.8.8", 88.0, is_known=False)


def test_static_peers_and_our_own_networks_may_always_try() -> None:
    doorway: PendingLimit[str] = PendingLimit()
    for _ in range(100):
        assert doorway.admits("8.8.8.8", 0.0, is_known=True)
        assert doorway.admits("192.168.1.2", 0.0, is_known=False)


def test_the_one_that_waited_longest_goes_when_there_are_too_many() -> None:
    doorway: PendingLimit[str] = PendingLimit(max_pending=2)
    knock = lambda name: doorway.enter(name, "10.0.0.1", is_known=False)  # noqa: E731
    assert knock("a") is None
    assert knock("b") is None
    assert knock("c") == "a"
    doorway.leave("b")
    doorway.leave("a")
    assert knock("d") is None
    assert len(doorway) == 2


def test_who_floods_the_door_pushes_out_itself() -> None:
    doorway: PendingLimit[str] = PendingLimit(max_pending=3)
    assert doorway.enter("honest", "10.0.0.1", is_known=False) is None
    flood = [doorway.enter(f"flood {number}", "10.0.0.66", is_known=False) for number in range(100)]
    assert flood == [None, None, *(f"flood {number}" for number in range(98))]


def test_addresses_of_static_peers_are_pushed_out_last() -> None:
    doorway: PendingLimit[str] = PendingLimit(max_pending=3)
    assert doorway.enter("static", "10.0.0.1", is_known=True) is None
    assert doorway.enter("static again", "10.0.0.1", is_known=True) is None
    flood = [doorway.enter(f"flood {number}", f"10.0.1.{number}", is_known=False) for number in range(100)]
    assert flood == [None, *(f"flood {number}" for number in range(99))]
    assert doorway.enter("static once more", "10.0.0.1", is_known=True) == "flood 99"
    assert doorway.enter("and more", "10.0.0.1", is_known=True) == "static"


def test_a_flood_from_the_address_of_a_static_peer_leaves_room_for_others() -> None:
    doorway: PendingLimit[str] = PendingLimit()
    for number in range(100):
        doorway.enter(f"flood {number}", "10.0.0.1", is_known=True)
    for number in range(10):
        assert doorway.enter(f"honest {number}", f"10.0.0.{2 + number}", is_known=False) == f"flood {50 + number}"
    assert doorway.waiting("10.0.0.1") == 40


def test_what_is_remembered_of_addresses_is_bounded() -> None:
    doorway: PendingLimit[str] = PendingLimit()
    for number in range(5000):
        doorway.admits(f"8.{number >> 8}.{number & 255}.1", 0.0, is_known=False)
    assert len(doorway._last_seen) == 4096


def test_how_many_wait_from_one_address() -> None:
    doorway: PendingLimit[str] = PendingLimit()
    for name, ip in (("a", "10.0.0.1"), ("b", "10.0.0.1"), ("c", "10.0.0.2")):
        doorway.enter(name, ip, is_known=False)
    assert [doorway.waiting(f"10.0.0.{number}") for number in (1, 2, 3)] == [2, 1, 0]
