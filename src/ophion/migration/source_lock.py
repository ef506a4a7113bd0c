"""Refuses a database that its client is using, and prevents the client from starting while the database is read."""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

from ophion.errors import CommandError

_FLOCK: Final = "hhqqi4x"
"""`struct flock` of Linux on 64-bit machines: type, whence, start, length, process."""


class SourceLock:
    """A shared lock on the lock file of a database.

    RocksDB and Pebble lock this file with `fcntl`, geth's LevelDB locks it with `flock`, so this class acquires both
    kinds of lock. A shared lock needs no write permission. The client cannot start until the locks are released.
    """

    def __init__(self, file: Path, client: str) -> None:
        """Acquire the lock. Raises `CommandError` if a process holds it. A database without a lock file is not
        in use.
        """
        self._descriptor: int | None = None
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        except OSError as error:
            raise CommandError(f"Unable to read {file}: {error.strerror}") from error
        self._descriptor = descriptor
        owner = _fcntl_owner(descriptor)
        try:
            if owner is not None:
                raise BlockingIOError
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            with suppress(OSError):  # some file systems do not support locks
                fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            who = f"process {owner}" if owner else "another process"
            raise CommandError(
                f"{client} is using its database: {who} holds {file}. Stop {client}, or copy its data directory while"
                " it is stopped and migrate the copy, or use --rpc=URL with the running node."
            ) from None
        except OSError:
            return  # without file locks, this node cannot detect whether a client uses the database

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _fcntl_owner(descriptor: int) -> int | None:
    """Return the id of the process with an exclusive `fcntl` lock on the file, or 0 if that process is on another
    machine. None if no process has such a lock, or if the file system has no locks.
    """
    asked = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
    try:
        found = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    except OSError:
        return None
    return None if found[0] == fcntl.F_UNLCK else max(0, int(found[4]))
