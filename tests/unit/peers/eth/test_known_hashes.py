"""Tests the bounded set of recent hashes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ophion.peers.eth.known_hashes import RecentHashes


def test_added_hashes_are_known_until_cleared() -> None:
    known = RecentHashes(10)
    known.add(b"a")
    known.update([b"b", b"c"])
    assert b"a" in known
    assert b"c" in known
    assert b"d" not in known
    assert known.among({b"a", b"c", b"d"}) == {b"a", b"c"}
    known.discard(b"c")
    assert b"c" not in known
    known.clear()
    assert b"a" not in known
    assert len(known) == 0


@given(st.lists(st.integers(0, 200), max_size=300), st.integers(2, 40))
def test_between_half_and_all_of_the_limit_is_kept(values: list[int], limit: int) -> None:
    known = RecentHashes(limit)
    for value in values:
        known.add(value.to_bytes(2, "big"))
        assert len(known) <= limit
    for value in values[-(limit // 2) :]:
        assert value.to_bytes(2, "big") in known


@given(st.lists(st.lists(st.integers(0, 200), max_size=30), max_size=20), st.integers(2, 40))
def test_several_hashes_are_added_as_one_by_one(values: list[list[int]], limit: int) -> None:
    together, alone = RecentHashes(limit), RecentHashes(limit)
    for some in values:
        hashes = [value.to_bytes(2, "big") for value in some]
        together.update(hashes)
        for hash in hashes:
            alone.add(hash)
        every = {value.to_bytes(2, "big") for value in range(201)}
        assert together.among(every) == alone.among(every) == {hash for hash in every if hash in together}


@given(st.lists(st.integers(0, 60), max_size=60), st.lists(st.integers(0, 60), max_size=10), st.integers(2, 40))
def test_none_of_several_hashes_is_known_if_each_is_unknown(added: list[int], asked: list[int], limit: int) -> None:
    known = RecentHashes(limit)
    for value in added:
        known.add(bytes([value]))
    hashes = [bytes([value]) for value in asked]
    assert known.has_none(hashes) == all(hash not in known for hash in hashes)
