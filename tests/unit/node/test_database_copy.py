"""A copy is complete or absent."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from pathlib import Path

import pytest

from ophion.errors import StorageError
from ophion.node import database_copy
from ophion.node.database_copy import CopyStep, back_up, compact
from ophion.node.datadir import DataDirectory
from ophion.producer.vote_store import DURABLE_VOTES_KEY
from tests.unit.native.worlds import KEYS, World, signed


def nothing(step: CopyStep, done: int, total: int) -> None:
    """Ignore progress reports of a copy."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data path with a chain of five blocks."""
    path = tmp_path / "data"
    with DataDirectory.open(path) as directory:
        directory.store()
    world = World(path / "database")
    parent = world.genesis
    for nonce in range(5):
        parent = world.block(parent, [signed(KEYS[0], nonce, bytes([nonce + 1]) * 20, 1)])
        world.extend(parent)
    world.store.close()
    return path


def head(path: Path) -> int:
    with DataDirectory.open_existing(path) as directory:
        store = directory.store(read_only=True)
        assert store.check(10) == []
        found = store.head()
        assert found is not None
        return found[1]


def test_a_backup_holds_no_votes_of_the_validator(data: Path, tmp_path: Path) -> None:
    with DataDirectory.open(data) as directory:
        directory.store().put_meta(DURABLE_VOTES_KEY, b"qbft\0something")
        directory.store().put_meta("another", b"kept")
    back_up(data, tmp_path / "copy", 0, True, nothing)
    assert not (tmp_path / "copy" / "database" / "lock.mdb").exists()
    assert head(tmp_path / "copy") == 5
    for path, expected in ((data, b"qbft\0something"), (tmp_path / "copy", b"qbft\0")):
        with DataDirectory.open_existing(path) as directory:
            store = directory.store(read_only=True)
            assert (store.meta(DURABLE_VOTES_KEY), store.meta("another")) == (expected, b"kept")
    # apart from the freed pages, compaction changes no data
    with DataDirectory.open_existing(data) as directory:
        compact(directory, nothing)
        assert directory.store(read_only=True).meta(DURABLE_VOTES_KEY) == b"qbft\0something"


def test_a_backup_is_a_data_path_of_its_own(data: Path, tmp_path: Path) -> None:
    seen: dict[CopyStep, tuple[int, int]] = {}
    copied = back_up(data, tmp_path / "some" / "where", 0, True, lambda step, *far: seen.update({step: far}))
    assert copied.number == head(tmp_path / "some" / "where") == 5
    assert (
        copied.size
        == (tmp_path / "some" / "where" / "database" / "data.mdb").stat().st_size
        == seen[CopyStep.COPYING][0]
    )
    assert 0 < seen[CopyStep.CHECKING][0] <= seen[CopyStep.CHECKING][1]
    assert sorted(path.name for path in (tmp_path / "some").iterdir()) == ["where"]
    for path in (tmp_path / "some" / "where").rglob("*"):
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def test_a_limit_holds_the_copy_back(data: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    copied = back_up(data, tmp_path / "copy", 200_000, False, nothing)
    assert time.monotonic() - began >= copied.size / 200_000


@pytest.mark.parametrize("what", ["file", "full", "link"])
def test_what_is_there_already_is_not_touched(data: Path, tmp_path: Path, what: str) -> None:
    target = tmp_path / "target"
    if what == "file":
        target.write_text("mine")
    elif what == "full":
        target.mkdir()
        (target / "mine").write_text("mine")
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StorageError, match="is there already|is not empty"):
        back_up(data, target, 0, True, nothing)
    assert not (tmp_path / "target.partial").exists()


def test_an_empty_directory_is_filled(data: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    back_up(data, tmp_path / "target", 0, True, nothing)
    assert head(tmp_path / "target") == 5


@pytest.mark.parametrize("when", CopyStep)
def test_a_copy_that_fails_leaves_nothing_behind(data: Path, tmp_path: Path, when: CopyStep) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(step: CopyStep, done: int, total: int) -> None:
        if step is when:
            raise Interrupted

    with pytest.raises(Interrupted):
        back_up(data, tmp_path / "copy", 0, True, interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert head(data) == 5


def test_what_a_killed_copy_left_is_used_again(data: Path, tmp_path: Path) -> None:
    partial = tmp_path / "copy.partial" / "database"
    partial.mkdir(parents=True)
    (partial / "data.mdb").write_bytes(b"half")
    back_up(data, tmp_path / "copy", 0, True, nothing)
    assert head(tmp_path / "copy") == 5
    assert not (tmp_path / "copy.partial").exists()


def test_existing_files_of_others_are_not_removed(data: Path, tmp_path: Path) -> None:
    def fail(step: CopyStep, done: int, total: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "copy.partial").mkdir()
    (tmp_path / "copy.partial" / "mine").write_text("mine")
    with pytest.raises(StorageError, match="the disk is full"):
        back_up(data, tmp_path / "copy", 0, True, fail)
    assert [path.name for path in (tmp_path / "copy.partial").iterdir()] == ["mine"]


def test_two_copies_to_one_target_are_refused(data: Path, tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "copy.partial"), pytest.raises(StorageError, match="in use by"):
        back_up(data, tmp_path / "copy", 0, True, nothing)


def test_a_damaged_database_makes_no_backup(data: Path, tmp_path: Path) -> None:
    file = data / "database" / "data.mdb"
    # change the recipient of a transaction everywhere in the database file
    file.write_bytes(file.read_bytes().replace(bytes([3]) * 20, bytes([3]) * 19 + bytes([4])))
    with pytest.raises(StorageError, match="The copy is not used, because it is damaged:\n"):
        back_up(data, tmp_path / "copy", 0, True, nothing)
    assert not (tmp_path / "copy").exists()
    assert not (tmp_path / "copy.partial").exists()


def test_a_full_disk_is_noticed_before_anything_is_written(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_copy, "_SPARE", 1 << 60)
    with pytest.raises(StorageError, match=r"The copy needs \d+ MiB, and "):
        back_up(data, tmp_path / "copy", 0, True, nothing)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_there_is_nothing_to_copy_where_there_is_no_chain(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="There is no chain in"):
        back_up(tmp_path / "nothing", tmp_path / "copy", 0, True, nothing)
    with DataDirectory.open(tmp_path / "data") as directory:
        directory.store()
    with pytest.raises(StorageError, match="There is no chain in the database yet"):
        back_up(tmp_path / "data", tmp_path / "copy", 0, True, nothing)
    assert not (tmp_path / "copy").exists()


def test_compaction_gives_pages_back(data: Path) -> None:
    world = World(data / "database")
    for _ in range(3):
        # each replacement of the large value frees pages
        world.store.put_meta("large", os.urandom(1 << 20))
    world.store.put_meta("large", b"")
    world.store.close()
    del world
    with DataDirectory.open_existing(data) as directory:
        before, copied = compact(directory, nothing)
    file = data / "database" / "data.mdb"
    assert file.stat().st_size == copied.size < before - (1 << 20)
    assert head(data) == 5
    assert not (data / "database" / "compacted").exists()
    assert not file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO), "readable by its owner only"
    again = World(data / "database")
    assert again.store.head() is not None
    again.store.put_meta("written", b"afterwards")
    again.store.close()


def test_what_a_killed_compaction_left_goes_with_the_next_start(data: Path) -> None:
    left = data / "database" / "compacted"
    left.mkdir()
    (left / "data.mdb").write_bytes(bytes(1 << 20))
    with DataDirectory.open(data) as directory:
        directory.store(read_only=True)
        assert left.exists(), "who only looks takes nothing away"
    with DataDirectory.open(data) as directory:
        directory.store()
        assert not left.exists()
    left.mkdir()
    (left / "notes.txt").write_text("a foreign file")
    with DataDirectory.open(data) as directory:
        directory.store()
    assert (left / "notes.txt").exists()


def test_compaction_and_backups_keep_out_of_each_others_way(data: Path, tmp_path: Path) -> None:
    held = os.open(data / "database", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    with DataDirectory.open_existing(data) as directory, pytest.raises(StorageError, match="is being copied"):
        compact(directory, nothing)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(StorageError, match="is being compacted"):
        back_up(data, tmp_path / "copy", 0, True, nothing)
    os.close(held)
    assert head(data) == 5
