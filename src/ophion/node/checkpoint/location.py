"""The location of a checkpoint: a directory, an archive or an HTTP(S) address."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from ophion.errors import CheckpointError
from ophion.node.datadir import DATA_FILE

ARCHIVE_SUFFIXES = (".tar", ".tar.gz", ".tgz")


def is_url(location: str) -> bool:
    """Whether a location is an HTTP(S) address."""
    return location.lower().startswith(("http://", "https://"))


def is_archive_name(path: Path) -> bool:
    """Whether a path has the file name of an archive."""
    return path.name.lower().endswith(ARCHIVE_SUFFIXES)


def shown(location: str) -> str:
    """Return a location for logs and errors: an address without user and query, which may hold a secret."""
    if not is_url(location):
        return location
    parts = urlsplit(location)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def database_file(path: Path) -> Path | None:
    """Return the database file of a backup directory, or None for a file, which must be an archive.

    Raises `CheckpointError` if the path is neither a backup directory nor a file.
    """
    if path.is_file():
        return None
    for found in (path / "database" / DATA_FILE, path / DATA_FILE):
        if found.is_file():
            return found
    raise CheckpointError(
        f"There is no backup at {path}. Name a directory or an archive that `ophion storage backup` has written."
    )
