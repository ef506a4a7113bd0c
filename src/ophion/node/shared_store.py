"""Databases that are open for reading, one object for each in a process.

LMDB cannot open a database twice in one process. But a notebook opens its database again each time a cell runs. So all
readers of a database share one `Store`, and the last reader closes it.
"""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from weakref import WeakValueDictionary

from ophion.errors import StorageError
from ophion.native.store import Store, open_store

_OPEN_TWICE = "already open in this program"

_lock = threading.Lock()
_shared: WeakValueDictionary[tuple[int, int, int], SharedStore] = WeakValueDictionary()
"""Open databases by process, device and inode of their directory. The references are weak, so a reader that is dropped
without `close` leaves no entry.
"""


class SharedStore:
    """A database that several readers of this process use."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._readers = 1

    @classmethod
    def open(cls, database: Path) -> SharedStore:
        """Open a database for reading, or return the database that another reader has opened."""
        status = os.stat(database)
        key = os.getpid(), status.st_dev, status.st_ino
        with _lock:
            found = _shared.get(key)
            if found is not None and found._readers:
                found._readers += 1
                return found
            try:
                made = cls(open_store(database, create=False, read_only=True))
            except StorageError as error:
                made = cls(opened_again(error, database, read_only=True))
            _shared[key] = made
            return made

    def release(self) -> None:
        """Release the database. The last reader closes it."""
        with _lock:
            self._readers -= 1
            if not self._readers:
                self.store.close()


def opened_again(error: StorageError, database: Path, *, read_only: bool = False, durable: bool = True) -> Store:
    """Open a database again after `error`, if the error says that this process already has the database open. First
    collects readers that were dropped without `close`. Raises `StorageError` with instructions if the database is still
    open.
    """
    if _OPEN_TWICE not in error.message:
        raise error
    # a chain that was dropped without close() may wait for the garbage collector
    gc.collect()
    try:
        return open_store(database, create=not read_only, read_only=read_only, durable=durable)
    except StorageError as again:
        if _OPEN_TWICE not in again.message:
            raise
        raise StorageError(
            f"The database in {database.parent} is open in this program already. Close the chain or the reader that"
            " uses it, with its close(), then open it again."
        ) from again
