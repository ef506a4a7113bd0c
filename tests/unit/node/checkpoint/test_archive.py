"""An archive yields its database file, or one error."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from ophion.errors import CheckpointError
from ophion.node.checkpoint.archive import extract_database, write_archive

CONTENT = bytes(range(256)) * 20_000


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a backup directory."""
    database = tmp_path / "backup" / "database"
    database.mkdir(parents=True)
    (database / "data.mdb").write_bytes(CONTENT)
    (database / "DATABASE_METADATA.json").write_text('{"version":1}')
    return tmp_path / "backup"


def extract(archive: Path, target: Path, max_bytes: int = 1 << 30) -> None:
    extract_database(archive, target, max_bytes, lambda done: None)


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz"])
def test_an_archive_holds_the_database(directory: Path, tmp_path: Path, name: str) -> None:
    size = write_archive(directory, tmp_path / name)
    assert (tmp_path / name).stat().st_size == size
    assert (size < len(CONTENT)) == (name != "a.tar")
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "backup"]
    extract(tmp_path / name, tmp_path / "data.mdb")
    assert (tmp_path / "data.mdb").read_bytes() == CONTENT


@pytest.mark.parametrize("name", ["a.tar", "a.tgz"])
def test_a_truncated_archive_is_refused(directory: Path, tmp_path: Path, name: str) -> None:
    write_archive(directory, tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    for part, length in enumerate((0, 1, 100, len(whole) // 2)):
        cut = tmp_path / f"cut{part}.tar"
        cut.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="damaged or incomplete|holds no database"):
            extract(cut, tmp_path / f"target{part}")


def test_an_archive_larger_than_the_free_space_is_refused(directory: Path, tmp_path: Path) -> None:
    write_archive(directory, tmp_path / "a.tgz")
    with pytest.raises(CheckpointError, match="more than 1000 bytes"):
        extract(tmp_path / "a.tgz", tmp_path / "data.mdb", 1000)


def test_names_in_an_archive_are_no_paths(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w") as file:
        link = tarfile.TarInfo("database/data.mdb")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(link)
        member = tarfile.TarInfo("../../data.mdb")
        member.size = 3
        file.addfile(member, io.BytesIO(b"abc"))
    extract(archive, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"abc"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "target"]


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"no archive at all" * 100)
    with pytest.raises(CheckpointError, match="damaged or incomplete"):
        extract(tmp_path / "a.tar", tmp_path / "target")
