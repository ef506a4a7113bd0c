"""A prepared folder becomes the database in one step."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.errors import StorageError
from ophion.native.store import open_store
from ophion.node.database_install import install_database
from ophion.node.datadir import DATA_FILE, LOCK_FILE, DataDirectory


def test_a_folder_replaces_an_empty_database_folder(tmp_path: Path) -> None:
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    open_store(prepared).close()
    with DataDirectory.open(tmp_path / "data") as directory:
        directory.database.mkdir()
        (directory.database / LOCK_FILE).touch()
        install_database(prepared, directory)
        assert sorted(path.name for path in directory.database.iterdir()) == ["DATABASE_METADATA.json", DATA_FILE]
        directory.store()
    assert not prepared.exists()


def test_a_missing_folder_is_one_error(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "data") as directory, pytest.raises(StorageError, match="No such file"):
        install_database(tmp_path / "nothing", directory)
