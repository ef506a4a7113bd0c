"""Tests the bound and the keys of the log cache."""

from __future__ import annotations

from ophion.rpc.services.log_cache import LogCache
from ophion.rpc.services.log_query import LogQuery

BLOCK, OTHER = b"\x01" * 32, b"\x02" * 32
QUERY = LogQuery(addresses=(b"\x03" * 20,), topics=(None, (b"\x04" * 32,)))


def test_an_entry_belongs_to_its_block_and_to_addresses_and_topics() -> None:
    cache = LogCache()
    cache.keep(BLOCK, False, QUERY, b"[1]")
    assert cache.get(BLOCK, False, QUERY) == b"[1]"
    same = LogQuery(from_block=5, to_block=9, addresses=QUERY.addresses, topics=QUERY.topics)
    assert cache.get(BLOCK, False, same) == b"[1]", "the range of a filter does not matter"
    assert cache.get(BLOCK, True, QUERY) is None
    assert cache.get(OTHER, False, QUERY) is None
    assert cache.get(BLOCK, False, LogQuery(addresses=QUERY.addresses)) is None
    cache.clear()
    assert cache.get(BLOCK, False, QUERY) is None
    assert cache.held_bytes == 0


def test_the_oldest_entries_leave_a_full_cache() -> None:
    cache = LogCache(max_bytes=100_000)
    blocks = [number.to_bytes(32, "big") for number in range(200)]
    for block in blocks:
        cache.keep(block, False, QUERY, bytes(1000))
        cache.keep(block, False, QUERY, bytes(1000))
        assert cache.held_bytes <= 100_000
    kept = [block for block in blocks if cache.get(block, False, QUERY) is not None]
    assert kept == blocks[-len(kept) :]
    assert len(kept) > 50


def test_a_large_text_is_not_stored() -> None:
    cache = LogCache(max_bytes=100_000)
    cache.keep(BLOCK, False, QUERY, bytes(50_000))
    assert cache.get(BLOCK, False, QUERY) is None
    assert cache.held_bytes == 0
