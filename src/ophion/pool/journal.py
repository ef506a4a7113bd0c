"""Journal of local transactions, so that acknowledged transactions survive a restart.

One line per transaction: arrival in milliseconds, a space, the raw bytes as hex. Lines are appended before the client
gets its response, with one write per batch, so a killed process loses nothing. To survive power cuts, the file is
flushed to disk at intervals (`sync`). A client that must be certain waits for the receipt.

When most lines belong to mined transactions, the journal is rewritten: a new file beside the old file gets the lines of
pending transactions, and all further lines. The event loop writes only the first megabyte of the old lines; `sync`
writes the other old lines in a worker thread. Once the new file is on disk, `sync` renames it over the old file. Until
then both files are valid. Torn or invalid lines are skipped when a file is read.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ophion.errors import StorageError

log = logging.getLogger(__name__)

_SLACK_BYTES = 1 << 20
"""Maximum bytes of journal lines whose transactions have left the pool, before the journal is rewritten."""
_PIECE_BYTES = 1 << 20
"""Size in bytes of the pieces in which journal lines are written."""


class JournalEntry(Struct, frozen=True):
    """A transaction in the journal."""

    raw: bytes
    added_at: float

    def line(self) -> bytes:
        return b"%d %s\n" % (self.added_at * 1000, self.raw.hex().encode())


def lines(entries: Iterable[JournalEntry]) -> bytes:
    """Encode entries as lines. `journal_lines` of the Rust extension writes the same format."""
    return b"".join(entry.line() for entry in entries)


class _Rest:
    """Lines of pending transactions that `TransactionJournal.rewrite` has not written to the new file yet."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.size = 0
        """Number of bytes written so far."""
        self.is_done = False
        self._lock = threading.Lock()
        """Held during a write, because the event loop writes the remaining lines when the node stops, while the worker
        thread may still write.
        """
        self._pieces = pieces
        self._piece: bytes | None = None
        """The piece that is being written. If the write fails, the next call of `write` repeats the piece."""

    def write(self, file: int) -> None:
        """Write all lines. During this call the event loop may append other lines to the file.

        Each piece begins with a line feed, because the line before it may be incomplete.
        """
        with self._lock:
            while not self.is_done:
                if self._piece is None:
                    self._piece = next(self._pieces, b"")
                if self._piece:
                    _write(file, b"\n" + self._piece)
                self.size += len(self._piece)
                self.is_done, self._piece = not self._piece, None


class TransactionJournal:
    """An append-only file of local transactions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beside = path.with_name(path.name + ".new")
        self._is_beside = False
        """Whether the open file is a new file that is not renamed yet."""
        self._file: int | None = None
        self._size = 0
        self._rest = _Rest(iter(()))
        self._is_dirty = False
        self._is_torn = False
        """Whether the last line may be incomplete because the disk was full."""

    def open(self) -> list[JournalEntry]:
        """Return the transactions of the last run and start a clean file. Skips invalid lines."""
        try:
            self._merge()
            entries = list(_read(self._path))
            self._replace(entries)
            # an empty journal is not dirty, so `sync` does not flush it
            self._is_dirty = bool(entries)
            self.sync()
        except OSError as error:
            raise StorageError(f"Cannot use {self._path}: {error.strerror}") from error
        return entries

    def append(self, data: bytes) -> None:
        """Append lines with one system call."""
        if self._file is None:
            return
        if self._is_torn or not self._rest.is_done:
            data = b"\n" + data
        try:
            _write(self._file, data)
        except OSError as error:
            failure = self._failed(error)
            if not self._is_torn:
                # log only the first failure, because each failed request returns an error to its client
                log.error("local transactions refused: journal not writable error=%s", failure)
            self._is_torn = True
            raise failure from error
        self._size += len(data)
        self._is_dirty, self._is_torn = True, False

    def is_wasteful(self, live_bytes: int) -> bool:
        """Whether so many lines belong to removed transactions that the file should be rewritten."""
        return not self._is_beside and self._size + self._rest.size > 4 * live_bytes + _SLACK_BYTES

    def rewrite(self, entries: Iterable[JournalEntry]) -> None:
        """Rewrite the file with these transactions only. This call reads the first megabyte of `entries`; `sync` reads
        the other entries later, perhaps in another thread.
        """
        if self._file is None:
            return
        try:
            self._replace(entries)
        except OSError as error:
            raise self._failed(error) from error

    def sync_job(self) -> Callable[[], None] | None:
        """Return a job for a worker thread that flushes lines and completes a rewrite, or None if neither is needed."""
        if self._file is None or not (self._is_dirty or self._is_beside):
            return None
        is_dirty, self._is_dirty, is_beside, rest = self._is_dirty, False, self._is_beside, self._rest
        # use a duplicate descriptor, because the journal may be closed while the job runs
        handle = os.dup(self._file)

        def sync() -> None:
            try:
                if is_beside:
                    rest.write(handle)
                if is_dirty:
                    os.fdatasync(handle)
                if is_beside:  # rename only the file that was flushed, because a newer file may not be on disk yet
                    self._settle()
            except OSError as error:
                self._is_dirty = True
                raise self._failed(error) from error
            finally:
                os.close(handle)

        return sync

    def sync(self) -> None:
        """Flush the appended lines in this thread."""
        job = self.sync_job()
        if job is not None:
            job()

    def close(self) -> None:
        """Flush and close the file."""
        self.sync()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _merge(self) -> None:
        """Append a new file that a killed process left behind to the old file."""
        if not self._beside.exists():
            return
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # a line feed ends the last line, which may be incomplete after a crash
            _write(file, b"\n" + self._beside.read_bytes())
            os.fdatasync(file)
        finally:
            os.close(file)
        self._beside.unlink()

    def _replace(self, entries: Iterable[JournalEntry]) -> None:
        """Continue in a new file with these entries. Writes the first megabyte of the entries; `sync` writes the other
        entries.
        """
        pieces = _pieces(entries)
        data = next(pieces, b"")
        file = os.open(self._beside, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write(file, data)
        except BaseException:
            os.close(file)
            raise
        if self._file is not None:
            os.close(self._file)
        self._file, self._size, self._rest = file, len(data), _Rest(pieces)
        self._is_dirty = self._is_beside = True
        self._is_torn = False

    def _settle(self) -> None:
        """Rename the new file over the old file, after the new file is on disk."""
        with suppress(FileNotFoundError):  # another thread renamed the file while the node was stopping
            os.replace(self._beside, self._path)
        self._is_beside = False

    def _failed(self, error: OSError) -> StorageError:
        return StorageError(f"Cannot write {self._path}: {error.strerror}")


def _pieces(entries: Iterable[JournalEntry]) -> Iterator[bytes]:
    """Encode entries as lines, in pieces of about `_PIECE_BYTES`."""
    piece = bytearray()
    for entry in entries:
        piece += entry.line()
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)


def _write(file: int, data: bytes) -> None:
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, data[written:])


def _read(path: Path) -> Iterator[JournalEntry]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return (entry for entry in map(_parse, lines) if entry is not None)


def _parse(line: bytes) -> JournalEntry | None:
    arrival, _, raw = line.partition(b" ")
    if not arrival.isdigit() or len(arrival) > 15 or not raw:
        return None
    try:
        return JournalEntry(bytes.fromhex(raw.decode("ascii")), int(arrival) / 1000)
    except ValueError:
        return None
