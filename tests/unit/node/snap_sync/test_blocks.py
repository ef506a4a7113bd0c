"""Blocks are written only if their headers are sealed, and their bodies and receipts match the roots in the headers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ophion.chain.block import decode_block
from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chain.events import ChainBlock
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import InvalidBlock, UnknownParent
from ophion.native.store import open_store
from ophion.native.wire import Receipts, split_receipts
from ophion.node.snap_sync.blocks import HashOf, ReceivedBlocks
from ophion.peers.eth.response_validation import wrapped
from ophion.primitives import rlp
from ophion.runtime.clock import SystemClock
from ophion.testing.busy_chain import blocks_of, genesis_text

NOW = 2_000_000_000


class Source:
    """An executed chain."""

    def __init__(self, path: Path, protocol: str, blocks: int) -> None:
        self.genesis = parse_genesis(genesis_text(protocol))
        self.store = open_store(path, durable=False)
        self.chain = Chain.open(self.store, self.genesis, engine_for(self.genesis.spec))
        core = ImportCore(self.chain, SystemClock())
        raws = blocks_of(genesis_text(protocol), blocks, 4, 3)
        self.blocks = [decode_block(raw, self.chain.engine) for raw in raws]
        for block in self.blocks:
            core.stage(block.header, block.body)
        core.commit()

    def receipts(self, block: ChainBlock) -> Receipts:
        raw = self.store.raw_receipts(block.header.hash)
        assert raw is not None
        (found,) = split_receipts(rlp.list_of([rlp.list_of([wrapped(one) for one in raw])]), True, 1)
        return found


@pytest.fixture(scope="module", params=["qbft", "clique"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    found = Source(tmp_path_factory.mktemp("source"), request.param, 260)
    yield found
    found.store.close()


@contextmanager
def received(path: Path, source: Source, known_hash: HashOf | None = None) -> Iterator[tuple[Chain, ReceivedBlocks]]:
    store = open_store(path, durable=False)
    try:
        chain = Chain.open(store, source.genesis, engine_for(source.genesis.spec))
        yield chain, ReceivedBlocks(chain, known_hash)
    finally:
        store.close()


def write(blocks: ReceivedBlocks, source: Source, part: list[ChainBlock]) -> None:
    blocks.verify(part, NOW)
    blocks.write(part, [source.receipts(block) for block in part])


def test_written_blocks_are_those_of_the_source(tmp_path: Path, source: Source) -> None:
    with received(tmp_path, source) as (chain, blocks):
        for start, end in ((0, 1), (1, 12), (12, 260)):
            write(blocks, source, source.blocks[start:end])
        assert chain.head.hash == source.blocks[-1].header.hash
        assert chain.tip.total_difficulty == source.store.total_difficulty(chain.head.hash)
        for block in source.blocks:
            hash = block.header.hash
            assert chain.store.block_receipts_json(hash, True) == source.store.block_receipts_json(hash, True)
            for transaction in block.body.transactions:
                found = chain.store.transaction_position(transaction.hash)
                assert found == source.store.transaction_position(transaction.hash)


def test_an_unsealed_header_is_refused(tmp_path: Path, source: Source) -> None:
    block = source.blocks[5]
    header = block.header.header
    changed = type(header).decode(header.encode().replace(header.extra_data[-20:], bytes(20)))
    wrong = ChainBlock(source.chain.engine.hashed(changed), block.body)
    with received(tmp_path, source) as (chain, blocks):
        with pytest.raises(InvalidBlock, match="block number 6"):
            blocks.verify([*source.blocks[:5], wrong], NOW)
        write(blocks, source, source.blocks[:6])
        assert chain.head.number == 6


def test_a_gap_is_refused(tmp_path: Path, source: Source) -> None:
    with received(tmp_path, source) as (_, blocks), pytest.raises(UnknownParent):
        blocks.verify(source.blocks[3:5], NOW)


def test_blocks_of_another_branch_replace_later_blocks(tmp_path: Path, source: Source) -> None:
    with received(tmp_path, source) as (chain, blocks):
        write(blocks, source, source.blocks[:20])
        write(blocks, source, source.blocks[10:15])
        assert chain.head.number == 15
        assert chain.store.head() == (source.blocks[14].header.hash, 15)
        gone = source.blocks[18].body.transactions[0].hash
        assert chain.store.transaction_position(gone) is None
        write(blocks, source, source.blocks[15:30])
        assert chain.head.number == 30


def test_headers_without_bodies_are_verified_and_not_written(tmp_path: Path, source: Source) -> None:
    headers = [block.header for block in source.blocks[:12]]
    with received(tmp_path, source) as (chain, blocks):
        write(blocks, source, source.blocks[:4])
        blocks.verify_headers(headers[4:], NOW)
        with pytest.raises(UnknownParent):
            blocks.verify_headers(headers[5:], NOW)
        changed = type(headers[6].header).decode(
            headers[6].header.encode().replace(headers[6].header.state_root, bytes(32))
        )
        with pytest.raises(InvalidBlock):
            blocks.verify_headers([*headers[4:6], source.chain.engine.hashed(changed)], NOW)
        assert chain.head.number == 4


def test_with_known_hashes_other_blocks_are_refused(tmp_path: Path, source: Source) -> None:
    hashes = {block.header.number: block.header.hash for block in source.blocks}
    hashes[200] = bytes(32)
    with received(tmp_path, source, hashes.get) as (chain, blocks):
        write(blocks, source, source.blocks[:150])
        with pytest.raises(InvalidBlock, match="ancestor of the trusted block"):
            blocks.verify(source.blocks[150:210], NOW)
        assert chain.head.number == 150


def test_the_tally_of_votes_is_stored_with_known_hashes(tmp_path: Path, source: Source) -> None:
    hashes = {block.header.number: block.header.hash for block in source.blocks}
    with received(tmp_path, source, hashes.get) as (chain, blocks):
        for start in range(0, 260, 65):
            write(blocks, source, source.blocks[start : start + 65])
        assert chain.checkpoint(hashes[256]) is not None
