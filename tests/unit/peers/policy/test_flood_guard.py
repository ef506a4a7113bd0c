"""Who is heard while many are refused, in made-up time."""

from __future__ import annotations

from ophion.peers.policy.flood_guard import ADDRESS_BURST, REFUSED_S, RETURN_S, FloodGuard

HERE, THERE = "127.0.0.1", "10.0.0.9"
NOW = 1000.0


def name(number: int) -> bytes:
    return number.to_bytes(64, "big")


def pressed(now: float = NOW) -> FloodGuard:
    """A crowd from one address."""
    crowd = FloodGuard()
    for number in range(ADDRESS_BURST):
        crowd.refused(HERE, name(10_000 + number), now)
    return crowd


def test_a_few_refusals_change_nothing() -> None:
    crowd = FloodGuard()
    assert not crowd.presses(HERE, NOW)
    for number in range(ADDRESS_BURST - 1):
        crowd.refused(HERE, name(number), NOW)
    assert not crowd.presses(HERE, NOW)


def test_many_refusals_of_an_address_are_its_own_matter_and_soon_forgotten() -> None:
    crowd = pressed()
    assert crowd.presses(HERE, NOW)
    assert not crowd.presses(THERE, NOW)
    assert not crowd.presses(HERE, NOW + 1)
    assert crowd.presses(HERE, NOW + 1, undecided=5)
    assert not crowd.presses(THERE, NOW, undecided=50), "nobody from there was refused"


def test_who_has_very_many_addresses_is_one_crowd() -> None:
    crowd = FloodGuard()
    for number in range(200):
        crowd.refused(f"10.1.0.{number}", name(number), NOW)
    assert crowd.presses(THERE, NOW)


def test_who_comes_again_is_heard_and_who_makes_up_names_is_not() -> None:
    crowd = pressed()
    assert not crowd.admits(name(1), NOW)
    assert not crowd.admits(name(1), NOW + RETURN_S / 2)
    for number in range(3000):
        assert not crowd.admits(name(20_000 + number), NOW + 3 * number / 3000)
    assert crowd.admits(name(1), NOW + 3)


def test_handshakes_with_those_who_come_again_are_bounded() -> None:
    crowd = pressed()
    names = [name(number) for number in range(1000)]
    assert not any(crowd.admits(one, NOW) for one in names)
    assert sum(crowd.admits(one, NOW + 1) for one in names) == 10


def test_who_was_refused_waits_until_the_rules_change_and_keeps_nobody_else_waiting() -> None:
    crowd = pressed()
    refused = [name(10_000 + number) for number in range(ADDRESS_BURST)]
    assert not any(crowd.admits(one, NOW + 1) for one in refused)
    assert crowd.admits(refused[0], NOW + REFUSED_S)
    crowd = pressed()
    crowd.reconsider()
    assert sum(crowd.admits(one, NOW + 1) for one in refused) == 10
    assert not crowd.admits(name(1), NOW)
    assert crowd.admits(name(1), NOW + 1)


def test_a_guest_is_welcome_until_the_rules_turn_against_it() -> None:
    crowd = pressed()
    crowd.accepted(name(1))
    assert all(crowd.admits(name(1), NOW) for _ in range(100))
    crowd.refused(HERE, name(1), NOW)
    assert not crowd.admits(name(1), NOW + 1)


def test_a_crowd_is_there_while_too_many_are_refused() -> None:
    crowd = FloodGuard()
    assert not crowd.is_there(NOW)
    for number in range(100):
        crowd.refused(HERE, name(number), NOW + number / 100)
    assert crowd.is_there(NOW + 1.5)
    assert not crowd.is_there(NOW + 2)
    crowd.admits(name(1000), NOW + 3)
    assert crowd.is_there(NOW + 3.5), "it is still there while unknown ones are turned away"


def test_first_messages_are_opened_so_many_times_a_second() -> None:
    crowd = FloodGuard()
    assert 270 <= sum(crowd.has_time(NOW + number / 10_000) for number in range(10_000)) <= 276


def test_what_is_remembered_is_bounded() -> None:
    crowd = FloodGuard()
    for number in range(20_000):
        crowd.refused(f"address {number}", name(number), NOW)
        crowd.admits(name(10**6 + number), NOW)
        crowd.accepted(name(10**7 + number))
    assert len(crowd._addresses) == len(crowd._guests) == 1024
    assert len(crowd._refused) == len(crowd._unknown) == 8192
