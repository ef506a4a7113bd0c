from __future__ import annotations

from ophion.peers.policy.bans import BAR_S, Bans


def node(number: int) -> bytes:
    return number.to_bytes(64, "big")


def test_a_bar_is_over_after_ten_minutes() -> None:
    bans = Bans()
    bans.bar(node(1), 100.0)
    assert bans.is_barred(node(1), 100.0 + BAR_S - 1)
    assert not bans.is_barred(node(2), 100.0)
    assert not bans.is_barred(node(1), 100.0 + BAR_S)
    assert len(bans) == 0


def test_a_second_offence_begins_anew() -> None:
    bans = Bans()
    bans.bar(node(1), 0.0)
    bans.bar(node(1), 500.0)
    assert bans.is_barred(node(1), 1000.0)


def test_an_operator_may_lift_it() -> None:
    bans = Bans()
    bans.bar(node(1), 0.0)
    bans.lift(node(1))
    bans.lift(node(2))
    assert not bans.is_barred(node(1), 1.0)


def test_the_list_is_bounded() -> None:
    bans = Bans()
    for number in range(5000):
        bans.bar(node(number), 0.0)
    assert len(bans) == 1024
    assert bans.is_barred(node(4999), 1.0)
    assert not bans.is_barred(node(0), 1.0)
