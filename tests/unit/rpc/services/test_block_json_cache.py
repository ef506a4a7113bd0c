"""Tests the cache of rendered blocks."""

from __future__ import annotations

from ophion.rpc.services.block_json_cache import BlockJsonCache
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface


def test_a_large_block_is_rendered_once_and_a_small_one_each_time(dev: Interface) -> None:
    raws = [legacy_transaction(DEV_KEYS[1], nonce) for nonce in range(300)]
    header, _ = dev.run(dev.node.mine(*raws))
    blocks = BlockJsonCache(dev.node.chain.store, True)
    full = blocks.block(header.hash, True)
    assert full is not None
    assert blocks.block(header.hash, True) is full
    short = blocks.block(header.hash, False)
    assert short == blocks.block(header.hash, False)
    assert blocks.block(bytes(32), True) is None
    assert len(blocks._texts) == 1


def test_what_is_kept_is_bounded(dev: Interface) -> None:
    hashes = []
    for start in range(0, 900, 300):
        raws = [legacy_transaction(DEV_KEYS[1], start + nonce) for nonce in range(300)]
        header, _ = dev.run(dev.node.mine(*raws))
        hashes.append(header.hash)
    blocks = BlockJsonCache(dev.node.chain.store, True, max_bytes=450_000)
    for block_hash in hashes:
        blocks.block(block_hash, True)
    assert [block_hash for block_hash, _ in blocks._texts] == hashes[1:]
