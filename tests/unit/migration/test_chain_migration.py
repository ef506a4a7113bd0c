"""A migration continues at the block where it stopped, follows a growing source and compares the heads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CommandError
from ophion.migration.block_source import SourceHead, missing_block
from ophion.migration.chain_migration import ChainMigration, MigrationResult
from ophion.native.store import open_store
from ophion.primitives.types import Hash32
from ophion.runtime.clock import SystemClock
from ophion.testing.besu_database import read_chain
from tests.conftest import DATA

CHAIN = DATA / "chains" / "besu-clique"
BLOCKS = list(read_chain(CHAIN))


class ListSource:
    """A source with blocks in memory. Each request for the head increases the head by `step`."""

    client = "List"

    def __init__(self, last: int, step: int = 0, missing: int | None = None) -> None:
        self.last = last
        self.asked: list[tuple[int, int]] = []
        self._step = step
        self._missing = missing

    def head(self) -> SourceHead:
        found = BLOCKS[self.last][0]
        self.last = min(self.last + self._step, len(BLOCKS) - 1)
        return SourceHead(found.number, found.hash)

    def hash_at(self, number: int) -> Hash32 | None:
        return BLOCKS[number][0].hash

    def blocks(self, first: int, last: int) -> Iterator[bytes]:
        self.asked.append((first, last))
        for number in range(first, last + 1):
            if number == self._missing:
                raise missing_block(self.client, number, "body")
            yield BLOCKS[number][1]

    def close(self) -> None:
        pass


def migrate(source: ListSource, path: Path, seen: list[tuple[int, int, int]] | None = None) -> MigrationResult:
    genesis = parse_genesis((CHAIN / "genesis.json").read_bytes())
    path.mkdir(exist_ok=True)
    store = open_store(path, create=True)
    try:
        chain = Chain.open(store, genesis, engine_for(genesis.spec))
        record = None if seen is None else (lambda *now: seen.append(now))
        return ChainMigration(source, ImportCore(chain, SystemClock()), SystemClock(), record).run()
    finally:
        store.close()


def test_a_second_run_reads_only_the_rest(tmp_path: Path) -> None:
    assert migrate(ListSource(10), tmp_path / "data").blocks == 10
    source = ListSource(24)
    done = migrate(source, tmp_path / "data")
    assert (done.first, done.blocks, done.head.number) == (11, 14, 24)
    assert source.asked == [(11, 24)]
    assert migrate(ListSource(24), tmp_path / "data").blocks == 0


def test_a_growing_source_is_followed_to_its_head(tmp_path: Path) -> None:
    seen: list[tuple[int, int, int]] = []
    source = ListSource(8, step=4)
    assert migrate(source, tmp_path / "data", seen).head.number == 24
    assert source.asked[0][0] == 1
    assert source.asked[-1][1] == 24
    assert seen[0] == (1, 1, source.asked[0][1])
    assert seen[-1] == (1, 24, 24)


def test_blocks_before_a_missing_one_stay(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="List has no body of block 15"):
        migrate(ListSource(24, missing=15), tmp_path / "data")
    assert migrate(ListSource(24), tmp_path / "data").first == 15


def test_a_longer_chain_here_is_no_difference(tmp_path: Path) -> None:
    migrate(ListSource(24), tmp_path / "data")
    assert migrate(ListSource(10), tmp_path / "data").head.number == 10


class ForkedSource(ListSource):
    """A source that claims another hash for the blocks from 5 on, but delivers the same blocks."""

    def hash_at(self, number: int) -> Hash32 | None:
        return b"\x11" * 32 if number >= 5 else super().hash_at(number)

    def head(self) -> SourceHead:
        return SourceHead(24, b"\x11" * 32)


def test_a_different_head_is_an_error(tmp_path: Path) -> None:
    migrate(ListSource(24), tmp_path / "data")
    source = ForkedSource(24)
    with pytest.raises(CommandError, match="The chains differ: block 24 of List is 0x1111"):
        migrate(source, tmp_path / "data")
    assert source.asked == [(5, 24)]
