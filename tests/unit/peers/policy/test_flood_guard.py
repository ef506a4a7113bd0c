"""Tests the throttling of inbound handshakes during a flood, with injected time."""

from __future__ import annotations

from ophion.peers.policy.flood_guard import ADDRESS_BURST, REFUSED_S, RETURN_S, FloodGuard

HERE, THERE = "127.0.0.1", "10.0.0.9"
NOW = 1000.0


def name(number: int) -> bytes:
    return number.to_bytes(64, "big")


def pressed(now: float = NOW) -> FloodGuard:
    """Return a guard after a flood from one address."""
    guard = FloodGuard()
    for number in range(ADDRESS_BURST):
        guard.refused(HERE, name(10_000 + number), now)
    return guard


def test_a_few_refusals_change_nothing() -> None:
    guard = FloodGuard()
    assert not guard.needs_early_node_id(HERE, NOW)
    for number in range(ADDRESS_BURST - 1):
        guard.refused(HERE, name(number), NOW)
    assert not guard.needs_early_node_id(HERE, NOW)


def test_many_refusals_of_an_address_are_its_own_matter_and_soon_forgotten() -> None:
    guard = pressed()
    assert guard.needs_early_node_id(HERE, NOW)
    assert not guard.needs_early_node_id(THERE, NOW)
    assert not guard.needs_early_node_id(HERE, NOW + 1)
    assert guard.needs_early_node_id(HERE, NOW + 1, undecided=5)
    assert not guard.needs_early_node_id(THERE, NOW, undecided=50), "no node from there was refused"


def test_a_flood_from_many_addresses_is_one_flood() -> None:
    guard = FloodGuard()
    for number in range(200):
        guard.refused(f"10.1.0.{number}", name(number), NOW)
    assert guard.needs_early_node_id(THERE, NOW)


def test_redialling_nodes_are_admitted_and_fresh_ids_are_not() -> None:
    guard = pressed()
    assert not guard.admits(name(1), NOW)
    assert not guard.admits(name(1), NOW + RETURN_S / 2)
    for number in range(3000):
        assert not guard.admits(name(20_000 + number), NOW + 3 * number / 3000)
    assert guard.admits(name(1), NOW + 3)


def test_handshakes_with_redialling_nodes_are_bounded() -> None:
    guard = pressed()
    names = [name(number) for number in range(1000)]
    assert not any(guard.admits(one, NOW) for one in names)
    assert sum(guard.admits(one, NOW + 1) for one in names) == 10


def test_refused_nodes_wait_for_a_rule_change_and_do_not_delay_others() -> None:
    guard = pressed()
    refused = [name(10_000 + number) for number in range(ADDRESS_BURST)]
    assert not any(guard.admits(one, NOW + 1) for one in refused)
    assert guard.admits(refused[0], NOW + REFUSED_S)
    guard = pressed()
    guard.reconsider()
    assert sum(guard.admits(one, NOW + 1) for one in refused) == 10
    assert not guard.admits(name(1), NOW)
    assert guard.admits(name(1), NOW + 1)


def test_an_accepted_node_may_redial_until_the_rules_refuse_it() -> None:
    guard = pressed()
    guard.accepted(name(1))
    assert all(guard.admits(name(1), NOW) for _ in range(100))
    guard.refused(HERE, name(1), NOW)
    assert not guard.admits(name(1), NOW + 1)


def test_a_flood_is_active_while_too_many_are_refused() -> None:
    guard = FloodGuard()
    assert not guard.is_active(NOW)
    for number in range(100):
        guard.refused(HERE, name(number), NOW + number / 100)
    assert guard.is_active(NOW + 1.5)
    assert not guard.is_active(NOW + 2)
    guard.admits(name(1000), NOW + 3)
    assert guard.is_active(NOW + 3.5), "still active while unknown nodes are refused"


def test_decryption_of_auth_messages_is_rate_limited() -> None:
    guard = FloodGuard()
    assert 270 <= sum(guard.may_decrypt(NOW + number / 10_000) for number in range(10_000)) <= 276


def test_all_tables_are_bounded() -> None:
    guard = FloodGuard()
    for number in range(20_000):
        guard.refused(f"address {number}", name(number), NOW)
        guard.admits(name(10**6 + number), NOW)
        guard.accepted(name(10**7 + number))
    assert len(guard._addresses) == len(guard._accepted) == 1024
    assert len(guard._refused) == len(guard._unknown) == 8192
