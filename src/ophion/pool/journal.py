"""Local transactions on disk, so that those acknowledged and not yet mined outlive the process.

One line per transaction: arrival in milliseconds, a space, the raw bytes as hex. Lines are appended before the sender
gets its answer, one write for all transactions of a batch; a killed process loses nothing, because the write has
reached the system. Against a power cut the file is forced to disk at intervals (`sync`), not for every batch: a
client that must know that its transaction survives that waits for the receipt.

Lines of mined transactions stay until there are many of them, then the file is written anew beside the old one, which
takes what comes from then on, and is renamed over it once it has reached the disk (`sync` again: the loop waits for no
disk). Until then both count: whoever opens the journal reads the old file and the one beside it. A torn last line, or
any line that makes no sense, is skipped when a file is read.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ophion.errors import StorageError

log = logging.getLogger(__name__)

_SLACK_BYTES = 1 << 20
"""Dead lines are tolerated up to this size."""


class Entry(Struct, frozen=True):
    """A transaction as the journal keeps it."""

    raw: bytes
    added_at: float

    def line(self) -> bytes:
        return b"%d %s\n" % (self.added_at * 1000, self.raw.hex().encode())


def lines(entries: Iterable[Entry]) -> bytes:
    """The form in which they stand in the file; `journal_lines` of the extension writes the same."""
    return b"".join(entry.line() for entry in entries)


class Journal:
    """An append-only file of local transactions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beside = path.with_name(path.name + ".new")
        self._is_beside = False
        """Whether the file in use has yet to be renamed."""
        self._file: int | None = None
        self._size = 0
        self._is_dirty = False
        self._is_torn = False
        """Whether the last line may be half a one, because the disk was full."""

    def open(self) -> list[Entry]:
        """The transactions of the last run; what makes no sense is left out, and the file starts clean."""
        try:
            self._merge()
            entries = list(_read(self._path))
            self._replace(entries)
            # where nothing is kept there is nothing to lose, and no disk to wait for
            self._is_dirty = bool(entries)
            self.sync()
        except OSError as error:
            raise StorageError(f"Cannot use {self._path}: {error.strerror}") from error
        return entries

    def append(self, data: bytes) -> None:
        """Write the lines of transactions behind the others with one system call."""
        if self._file is None:
            return
        if self._is_torn:
            data = b"\n" + data
        try:
            _write(self._file, data)
        except OSError as error:
            failure = self._failed(error)
            if not self._is_torn:  # once: clients are told each time, and the operator is not among them
                log.error("local transactions are refused: %s", failure)
            self._is_torn = True
            raise failure from error
        self._size += len(data)
        self._is_dirty, self._is_torn = True, False

    def is_wasteful(self, live_bytes: int) -> bool:
        """Whether so much of the file is dead that it should be written anew."""
        return not self._is_beside and self._size > 4 * live_bytes + _SLACK_BYTES

    def rewrite(self, entries: Sequence[Entry]) -> None:
        """Keep these transactions only."""
        if self._file is None:
            return
        try:
            self._replace(entries)
        except OSError as error:
            raise self._failed(error) from error

    def sync_job(self) -> Callable[[], None] | None:
        """A job that forces what was appended so far to disk, for a lane; None when there is nothing to do."""
        if self._file is None or not (self._is_dirty or self._is_beside):
            return None
        is_dirty, self._is_dirty, is_beside = self._is_dirty, False, self._is_beside
        # a handle of its own, because the file may be closed while the job runs
        handle = os.dup(self._file)

        def sync() -> None:
            try:
                if is_dirty:
                    os.fdatasync(handle)
                if is_beside:  # and not one that was begun since, which has not reached the disk
                    self._settle()
            except OSError as error:
                raise self._failed(error) from error
            finally:
                os.close(handle)

        return sync

    def sync(self) -> None:
        """Do that job here, where nobody waits."""
        job = self.sync_job()
        if job is not None:
            job()

    def close(self) -> None:
        """Force everything to disk and let go of the file."""
        self.sync()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _merge(self) -> None:
        """Whoever was killed before a new file was renamed has left two: put what is in it behind the old one."""
        if not self._beside.exists():
            return
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _write(file, b"\n" + self._beside.read_bytes())  # behind a line that may be torn
            os.fdatasync(file)
        finally:
            os.close(file)
        self._beside.unlink()

    def _replace(self, entries: Sequence[Entry]) -> None:
        """Go on in a new file, which holds these."""
        data = lines(entries)
        file = os.open(self._beside, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write(file, data)
        except BaseException:
            os.close(file)
            raise
        if self._file is not None:
            os.close(self._file)
        self._file, self._size = file, len(data)
        self._is_dirty = self._is_beside = True
        self._is_torn = False

    def _settle(self) -> None:
        """The file in use has reached the disk: it takes the place of the old one."""
        with suppress(FileNotFoundError):  # somebody was faster, when the node stops
            os.replace(self._beside, self._path)
        self._is_beside = False

    def _failed(self, error: OSError) -> StorageError:
        return StorageError(f"Cannot write {self._path}: {error.strerror}")


def _write(file: int, data: bytes) -> None:
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, data[written:])


def _read(path: Path) -> Iterator[Entry]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return (entry for entry in map(_parse, lines) if entry is not None)


def _parse(line: bytes) -> Entry | None:
    arrival, _, raw = line.partition(b" ")
    if not arrival.isdigit() or len(arrival) > 15 or not raw:
        return None
    try:
        return Entry(bytes.fromhex(raw.decode("ascii")), int(arrival) / 1000)
    except ValueError:
        return None
