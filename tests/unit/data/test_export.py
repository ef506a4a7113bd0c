"""Files of an export: written together, published one by one, all or none of a job."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ophion.chainspec.dev_network import dev_genesis
from ophion.data.database_reader import DatabaseReader
from ophion.data.datasets import datasets_named
from ophion.data.export import Export, ExportPlan
from ophion.data.export_target import DirectoryTarget, UnfinishedFile, Written
from ophion.errors import CommandError
from ophion.node.datadir import DataDirectory
from ophion.testing.node_core import open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction

DIFFS = ("balance_diffs", "nonce_diffs", "code_diffs", "storage_diffs")
BLOCKS = 6


def build(place: Path) -> None:
    async def mine() -> None:
        for nonce in range(BLOCKS):
            await core.send(legacy_transaction(DEV_KEYS[1], nonce, to=b"\x07" * 20, value=nonce, gas_price=10**10))
            await core.seal(1.0)

    with open_core(place / "database", genesis=dev_genesis()) as core:
        asyncio.run(mine())


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[DatabaseReader]:
    place = tmp_path / "data"
    with DataDirectory.open(place) as opened:
        opened.store()
    build(place)
    gc.collect()  # drops the last references to the database, so that it can be opened read-only
    with closing(DatabaseReader(place, dev_genesis)) as opened_reader:
        yield opened_reader


def exported(reader: DatabaseReader, place: Path, names: tuple[str, ...], workers: int = 2) -> Export:
    plan = ExportPlan(datasets_named(names), blocks_per_file=2, workers=workers)
    return Export(reader, DirectoryTarget(place), plan)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_number_of_workers_does_not_change_the_files(reader: DatabaseReader, tmp_path: Path, workers: int) -> None:
    names = ("blocks", "transactions", "traces", *DIFFS)
    result = exported(reader, tmp_path / "one", names, 1).run(0, BLOCKS)
    assert exported(reader, tmp_path / "other", names, workers).run(0, BLOCKS) == result
    assert result.files == len(names) * (BLOCKS // 2 + 1)

    def contents(place: Path) -> dict[str, bytes]:
        return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*.parquet")}

    assert contents(tmp_path / "one") == contents(tmp_path / "other")
    again = exported(reader, tmp_path / "other", names, workers).run(0, BLOCKS)
    assert (again.files, again.verified, again.replaced) == (0, result.files, 0)


def test_no_file_of_a_job_is_left_when_one_cannot_be_published(reader: DatabaseReader, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    export = exported(reader, place, DIFFS)
    (place / "nonce_diffs/from=00000002/part-00000002-00000003.parquet").mkdir(parents=True)
    with pytest.raises(CommandError, match="Unable to write .*nonce_diffs"):
        export.run(0, BLOCKS, verify=False)
    left = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    listed = {file.path for entry in export.manifest.datasets.values() for file in entry.files}
    assert left == {*listed, "_manifest.json"}
    assert not [path for path in listed if "from=00000002" in path]


class BrokenFile:
    """A file that cannot be published, because of an error of another kind than a refused file."""

    def __init__(self, file: UnfinishedFile) -> None:
        self.file = file.file
        self.discard = file.discard

    def publish(self) -> Written:
        self.discard()
        raise OSError("the disk fails")


class BrokenTarget(DirectoryTarget):
    def create(self, path: str) -> UnfinishedFile:
        file = super().create(path)
        return BrokenFile(file) if path.startswith("balance_diffs/from=00000002") else file


def test_no_file_of_a_job_is_left_after_any_error(reader: DatabaseReader, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    export = Export(reader, BrokenTarget(place), ExportPlan(datasets_named(DIFFS), blocks_per_file=2))
    with pytest.raises(OSError, match="the disk fails"):
        export.run(0, BLOCKS, verify=False)
    left = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    listed = {file.path for entry in export.manifest.datasets.values() for file in entry.files}
    assert left == {*listed, "_manifest.json"}


def test_a_changed_file_is_written_again(reader: DatabaseReader, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    exported(reader, place, ("blocks",)).run(0, BLOCKS)
    path = place / "blocks/from=00000002/part-00000002-00000003.parquet"
    before = path.read_bytes()
    path.write_bytes(bytes([*before[:99], before[99] ^ 1, *before[100:]]))
    result = exported(reader, place, ("blocks",)).run(0, BLOCKS)
    assert (result.files, result.replaced) == (1, 1)
    assert path.read_bytes() == before
