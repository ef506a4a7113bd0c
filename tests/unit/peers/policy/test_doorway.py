from __future__ import annotations

from ophion.peers.policy.addresses import read_subnet
from ophion.peers.policy.doorway import Doorway


def test_only_allowed_subnets_may_knock() -> None:
    doorway: Doorway[str] = Doorway([read_subnet("127.0.0.0/8")])
    assert doorway.admits("127.0.0.9", 0.0, is_known=False)
    assert not doorway.admits("10.0.0.1", 0.0, is_known=True)
    assert doorway.refused == 1


def test_a_public_address_may_try_once_in_thirty_seconds() -> None:
    doorway: Doorway[str] = Doorway()
    assert doorway.admits("8.8.8.8", 0.0, is_known=False)
    assert not doorway.admits("8.8.8.8", 29.0, is_known=False)
    assert not doorway.admits("8.8.8.8", 58.0, is_known=False)
    assert doorway.admits("8.8.8.8", 88.0, is_known=False)


def test_static_peers_and_our_own_networks_may_always_try() -> None:
    doorway: Doorway[str] = Doorway()
    for _ in range(100):
        assert doorway.admits("8.8.8.8", 0.0, is_known=True)
        assert doorway.admits("192.168.1.2", 0.0, is_known=False)


def test_the_one_that_waited_longest_goes_when_there_are_too_many() -> None:
    doorway: Doorway[str] = Doorway(max_pending=2)
    assert doorway.enter("a") is None
    assert doorway.enter("b") is None
    assert doorway.enter("c") == "a"
    doorway.leave("b")
    doorway.leave("a")
    assert doorway.enter("d") is None
    assert len(doorway) == 2


def test_what_is_remembered_of_addresses_is_bounded() -> None:
    doorway: Doorway[str] = Doorway()
    for number in range(5000):
        doorway.admits(f"8.{number >> 8}.{number & 255}.1", 0.0, is_known=False)
    assert len(doorway._last_seen) == 4096
