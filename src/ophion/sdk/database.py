"""The database of an embedded node: in memory, or in a data directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ophion.native.store import Store, open_store
from ophion.runtime.clock import SystemEntropy
from ophion.sdk.loop_runner import LoopRunner

_MEMORY_FOLDER = "/dev/shm"


def open_database(path: Path | None) -> tuple[Store, Any]:
    """Open the database. Returns the database and a function that releases its directory."""
    if path is None:
        return _memory_store(), _nothing
    from ophion.node.datadir import DataDirectory
    from ophion.node.storage_options import StorageConfig

    # change the umask only for the opening, because the umask belongs to the program that uses this library
    mask = os.umask(0o077)
    try:
        directory = DataDirectory.open(path)
    finally:
        os.umask(mask)
    try:
        return directory.store(StorageConfig(durable=False)), directory.close
    except BaseException:
        directory.close()
        raise


def _memory_store() -> Store:
    """Open a database in memory. Its files are deleted while they are open, so that a crash leaves nothing behind."""
    base = Path(_MEMORY_FOLDER)
    if not os.access(base, os.W_OK | os.X_OK):
        base = Path(os.environ.get("TMPDIR") or "/tmp")
    folder = base / f"ophion-{SystemEntropy().token(8).hex()}"
    folder.mkdir(mode=0o700)
    try:
        return open_store(folder, durable=False)
    finally:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def _nothing() -> None:
    """Release nothing."""


def close_database(runner: LoopRunner, store: Store, release: Any) -> None:
    """Close event loop and database. A forked process does not close the database, which belongs to its parent."""
    is_owner = runner.is_owner
    runner.close()
    if is_owner:
        if release is not _nothing:
            store.sync()
        store.close()
        release()
