"""Tests ancestor hashes for BLOCKHASH: across the canonical chain, side branches and uncommitted blocks."""

from __future__ import annotations

from pathlib import Path

from ophion.chain.ancestor_hashes import MAX_ANCESTORS, MAX_BYTES, ancestor_hashes
from ophion.primitives.header import HashedHeader
from tests.unit.chain.workshop import Workshop, workshop


def walk(shop: Workshop, parent: HashedHeader) -> bytes:
    """Return the expected hashes, found by following parent hashes only."""
    hashes = [parent.hash]
    while parent.number > 0 and len(hashes) < MAX_ANCESTORS:
        hashes.append(parent.parent_hash)
        above = shop.core.header(parent.parent_hash)
        assert above is not None
        parent = above
    return b"".join(hashes)


def test_hashes_are_those_of_a_walk_along_parents(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        main = shop.branch(6)
        side = shop.branch(3, parent=main[1].header, extra=b"side")
        for block in main + side:
            shop.put(block)
        for block in shop.branch(2):
            shop.core.stage(block.header, block.body)
            side.append(block)
        for block in [*main, *side]:
            found = ancestor_hashes(shop.chain.store, shop.core.header, block.header)
            assert found == walk(shop, block.header)
        assert ancestor_hashes(shop.chain.store, shop.chain.header, shop.chain.genesis) == shop.chain.genesis.hash


def test_a_long_chain_gives_256_hashes(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        blocks = shop.branch(260)
        for block in blocks[:-1]:
            shop.core.stage(block.header, block.body)
        shop.settle()
        for block in blocks[-2:]:
            found = ancestor_hashes(shop.chain.store, shop.core.header, block.header)
            assert len(found) == MAX_BYTES
            assert found == walk(shop, block.header)
