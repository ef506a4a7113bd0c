"""Tests headers cached in front of the database."""

from __future__ import annotations

from pathlib import Path

from ophion.chain.header_cache import HeaderCache
from tests.unit.chain.workshop import workshop


def test_a_header_is_decoded_once_and_what_is_missing_is_asked_for_again(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        cache = HeaderCache(shop.chain.store)
        block = shop.branch(1)[0]
        assert cache.get(block.header.hash) is None
        shop.put(block)
        found = cache.get(block.header.hash)
        assert found == block.header
        assert cache.get(block.header.hash) is found
