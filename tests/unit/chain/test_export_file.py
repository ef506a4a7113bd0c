"""Tests the export of chains into files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.chain.export_file import export_blocks
from ophion.chain.import_file import BlockFileImport
from ophion.errors import CommandError
from ophion.native.store import open_store
from ophion.runtime.clock import SystemClock
from tests.unit.chain.workshop import file_of, workshop


def test_an_exported_chain_can_be_imported(tmp_path: Path) -> None:
    path = tmp_path / "out.rlp"
    progress: list[tuple[int, int]] = []
    with workshop(tmp_path / "source") as shop:
        for block in shop.branch(3):
            shop.put(block)
        head = shop.chain.head
        assert export_blocks(shop.chain.store, path, on_progress=lambda *done: progress.append(done)) == 4
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with workshop(tmp_path / "target") as shop:
        BlockFileImport(shop.core, SystemClock()).run([path])
        assert shop.chain.head == head


def test_a_range_is_added_to_the_file_and_a_whole_export_begins_it_anew(tmp_path: Path) -> None:
    path = tmp_path / "out.rlp"
    with workshop(tmp_path / "source") as shop:
        blocks = shop.branch(4)
        for block in blocks:
            shop.put(block)
        store = shop.chain.store
        path.write_bytes(b"old")
        assert export_blocks(store, path, start=1, end=3) == 2
        assert export_blocks(store, path, start=3, end=100) == 2
        assert path.read_bytes() == b"old" + file_of(blocks)
        assert export_blocks(store, path, end=2) == 2
        assert path.read_bytes().endswith(file_of(blocks[:1]))


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [
        (-1, None, "--start-block must not be negative"),
        (None, -1, "--end-block must not be negative"),
        (2, 2, "must be greater than --start-block"),
        (None, 0, "must be greater than --start-block"),
        (7, 9, "There is no block 7 to export: the head is block 0"),
    ],
)
def test_impossible_ranges_are_refused(tmp_path: Path, start: int | None, end: int | None, problem: str) -> None:
    with workshop(tmp_path / "source") as shop, pytest.raises(CommandError, match=problem):
        export_blocks(shop.chain.store, tmp_path / "out.rlp", start, end)


def test_an_empty_database_and_an_unwritable_file_are_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path / "empty", durable=False)
    with pytest.raises(CommandError, match="the database is empty"):
        export_blocks(store, tmp_path / "out.rlp")
    store.close()
    with workshop(tmp_path / "source") as shop, pytest.raises(CommandError, match="Unable to write"):
        export_blocks(shop.chain.store, tmp_path / "no" / "folder" / "out.rlp")
