"""Makes a prepared folder the database of a data directory, by one rename."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from ophion.errors import StorageError
from ophion.node.datadir import DATA_FILE, LOCK_FILE, DataDirectory, mark_layout
from ophion.runtime.operator_files import force_directory

_LEFTOVERS: Final = (LOCK_FILE, "DATABASE_METADATA.json", "DATABASE_METADATA.new")


def install_database(database: Path, directory: DataDirectory) -> None:
    """Force the files to disk, then rename the folder. The data directory must have no database."""
    try:
        (database / LOCK_FILE).unlink(missing_ok=True)
        mark_layout(database)
        with (database / DATA_FILE).open("rb") as file:
            os.fsync(file.fileno())
        force_directory(database)
        if directory.database.exists():
            for name in _LEFTOVERS:
                (directory.database / name).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                directory.database.rmdir()
        database.rename(directory.database)
        force_directory(directory.path)
    except OSError as error:
        raise StorageError(f"{error.filename or database}: {error.strerror or error}") from error
