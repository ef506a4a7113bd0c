"""Shares of places and bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ophion.rpc.services.client_quotas import ClientQuotas


def test_one_client_takes_its_share_and_all_take_all() -> None:
    allowances = ClientQuotas(most=4, most_of_one=2, max_bytes=100, most_bytes_of_one=60)
    for client in ("a", "a", "b"):
        assert allowances.has_room(10)
        assert allowances.has_room_for(client, 10)
        allowances.keep(client, 10)
    assert not allowances.has_room_for("a", 1), "two of two"
    assert not allowances.has_room_for("b", 51), "more bytes than one may have"
    assert allowances.has_room_for("c", 60)
    assert not allowances.has_room(71), "more bytes than all may have"
    allowances.keep("c", 10)
    assert not allowances.has_room(1), "four of four"
    allowances.drop("a", 10)
    assert allowances.has_room(1)
    assert allowances.has_room_for("a", 1)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.booleans()), max_size=60))
def test_what_is_dropped_was_never_there(steps: list[tuple[str, int, bool]]) -> None:
    allowances, kept = ClientQuotas(10, 4, 200, 100), list[tuple[str, int]]()
    for client, size, wants in steps:
        if wants and allowances.has_room(size) and allowances.has_room_for(client, size):
            allowances.keep(client, size)
            kept.append((client, size))
        elif kept:
            allowances.drop(*kept.pop(0))
        assert len(kept) <= 10
        assert sum(size for _, size in kept) <= 200
    for one in kept:
        allowances.drop(*one)
    assert len(allowances) == 0
    assert allowances.has_room(200)
