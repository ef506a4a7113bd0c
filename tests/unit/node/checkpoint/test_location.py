"""The location of a checkpoint is a path or a URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.errors import CheckpointError
from ophion.node.checkpoint.location import database_file, is_archive_name, is_url, shown


def test_addresses_are_told_from_paths() -> None:
    assert is_url("HTTP://localhost/a.tar")
    assert is_url("https://example.org/a")
    assert not is_url("http/backup")
    assert not is_url("/srv/backup.tar")


def test_secrets_of_an_address_are_not_shown() -> None:
    assert shown("https://user:secret@example.org:8443/a.tar?token=x") == "https://example.org:8443/a.tar"
    assert shown("/srv/backup?x") == "/srv/backup?x"


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "A.TGZ"])
def test_archives_are_known_by_name(name: str) -> None:
    assert is_archive_name(Path(name))
    assert not is_archive_name(Path(name + ".d"))


def test_the_database_of_a_backup_is_found(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="There is no backup at"):
        database_file(tmp_path)
    with pytest.raises(CheckpointError, match="There is no backup at"):
        database_file(tmp_path / "missing")
    (tmp_path / "database").mkdir()
    (tmp_path / "database" / "data.mdb").touch()
    assert database_file(tmp_path) == tmp_path / "database" / "data.mdb"
    assert database_file(tmp_path / "database") == tmp_path / "database" / "data.mdb"
    (tmp_path / "backup.tar").touch()
    assert database_file(tmp_path / "backup.tar") is None
