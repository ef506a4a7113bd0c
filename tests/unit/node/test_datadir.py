"""Tests the data directory: locking, and errors when it cannot be used."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ophion.errors import StorageError
from ophion.node.datadir import DataConfig, DataDirectory, refuse_in_use
from ophion.node.storage_options import StorageConfig
from ophion.runtime.options import problems_of


def test_a_directory_is_made_with_its_database_and_closed_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    with DataDirectory.open(path) as directory:
        assert directory.store().head() is None
        assert directory.store() is directory.store()
    assert (path / "database" / "DATABASE_METADATA.json").read_text() == '{"version":1}'
    with DataDirectory.open(path) as directory:
        assert directory.store().head() is None


def test_a_second_user_learns_which_process_holds_the_lock(tmp_path: Path) -> None:
    with (
        DataDirectory.open(tmp_path),
        pytest.raises(StorageError, match=f"The data path .* is in use by process {os.getpid()}"),
    ):
        DataDirectory.open(tmp_path)
    DataDirectory.open(tmp_path).close()


def test_a_plain_file_is_no_data_path(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    for path in (plain, plain / "below"):
        with pytest.raises(StorageError, match="cannot be used: it is a file, or lies under one"):
            DataDirectory.open(path)


def test_what_cannot_be_used_is_known_before_anything_starts(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no key")
    assert problems_of(DataConfig(data_path=plain, node_private_key_file=plain)) == [
        f"The data path {plain} cannot be used: it is a file, or lies under one.",
        f"Supplied file does not contain valid key pair. ({plain}: expected one line of 64 hex digits)",
    ]
    assert problems_of(DataConfig(data_path=tmp_path / "new", node_private_key_file=tmp_path / "new.key")) == []


def test_a_data_path_that_is_not_utf_8_is_refused() -> None:
    [problem] = problems_of(DataConfig(data_path=Path(os.fsdecode(b"d\xff"))))
    assert problem == "The data path 'd\\udcff' cannot be used: its name is not UTF-8."


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.ENOSPC, "cannot be used: the disk is full"),
        (errno.EROFS, r"cannot be used: it cannot be written \(Read-only file system\)"),
        (errno.EACCES, r"cannot be used: it cannot be written \(Permission denied\)"),
        (errno.EIO, "cannot be used: Input/output error"),
    ],
)
def test_what_the_file_system_refuses_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, message: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StorageError, match=message):
        DataDirectory.open(tmp_path / "new")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"version":2}', "has version 2; this Ophion reads version 1"),
        ('{"version":0}', "was written by another program"),
        ('{"version":"1"}', "is damaged"),
        ('{"version":true}', "is damaged"),
        ("[]", "is damaged"),
        ("{", "is damaged"),
        ("[" * 100_000, "is damaged"),
    ],
)
def test_a_database_of_another_layout_is_refused_and_left_alone(tmp_path: Path, content: str, message: str) -> None:
    database = tmp_path / "database"
    database.mkdir()
    metadata = database / "DATABASE_METADATA.json"
    metadata.write_text(content)
    with DataDirectory.open(tmp_path) as directory, pytest.raises(StorageError, match=message):
        directory.store()
    assert [entry.name for entry in database.iterdir()] == [metadata.name]
    assert metadata.read_text() == content


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "database").mkdir()
    (tmp_path / "database" / "DATABASE_METADATA.json").write_text('{"version":1}')
    (tmp_path / "database" / "CURRENT").write_text("MANIFEST-000001\n")
    with pytest.raises(StorageError, match=r"holds data of Besu \(database/CURRENT\)"):
        DataDirectory.open(tmp_path)


def test_the_check_for_a_directory_in_use_leaves_no_trace(tmp_path: Path) -> None:
    refuse_in_use(tmp_path / "absent")
    refuse_in_use(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with DataDirectory.open(tmp_path):
        with pytest.raises(StorageError, match=f"is in use by process {os.getpid()}"):
            refuse_in_use(tmp_path)
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    refuse_in_use(tmp_path)


def test_tools_that_only_look_do_not_make_a_directory(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"^There is no chain in .*absent\.$"):
        DataDirectory.open_existing(tmp_path / "absent")
    assert list(tmp_path.iterdir()) == []


def test_tools_that_only_look_keep_others_out_too(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as directory:
        directory.store()
        with pytest.raises(StorageError, match="is in use by process"):
            DataDirectory.open_existing(tmp_path)
    with DataDirectory.open_existing(tmp_path) as directory:
        assert directory.store(read_only=True).head() is None


def test_the_key_is_in_the_directory_unless_configured_otherwise(tmp_path: Path) -> None:
    config = DataConfig(data_path=tmp_path)
    with DataDirectory.open(tmp_path) as directory:
        key, is_new = directory.key(config)
        assert is_new
        assert directory.key(config)[0].address == key.address
        other, _ = directory.key(DataConfig(data_path=tmp_path, node_private_key_file=tmp_path / "other"))
    assert (tmp_path / "key").exists()
    assert other.address != key.address


def test_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "data"
    (path / "database").mkdir(parents=True, mode=0o755)
    path.chmod(0o755)
    old = path / "key.old"
    old.write_text("x")
    old.chmod(0o644)
    with DataDirectory.open(path) as directory:
        directory.store()
        modes = {
            entry.name: entry.stat().st_mode & 0o777 for entry in (*path.iterdir(), *(path / "database").iterdir())
        }
        assert path.stat().st_mode & 0o777 == 0o700
        assert modes.pop("database") == 0o700
        assert set(modes.values()) == {0o600}, modes


def test_the_home_of_a_program_stays_open_to_others(tmp_path: Path) -> None:
    (tmp_path / "database").mkdir(mode=0o755)
    for name in ("key", "README", "database/data.mdb"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)  # earlier tests have set the umask
    tmp_path.chmod(0o755)
    with DataDirectory.open(tmp_path, holds_program=True):
        pass
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in (".", "README", "key", "database")}
    assert modes == {".": 0o755, "README": 0o644, "key": 0o600, "database": 0o700}


def test_a_lock_is_never_taken_through_a_link(tmp_path: Path) -> None:
    path, precious = tmp_path / "data", tmp_path / "precious"
    path.mkdir()
    precious.write_text("keep me")
    (path / "lock").symlink_to(precious)
    with pytest.raises(StorageError, match="is a link"):
        DataDirectory.open(path)
    assert precious.read_text() == "keep me"


def test_a_database_is_opened_as_the_options_say(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as directory:
        assert directory.store(StorageConfig(state_cache=5_000_000, durable=False)).state_cache() == 5_000_000
