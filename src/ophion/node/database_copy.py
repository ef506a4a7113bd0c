"""Copies the database: a backup of a running node, or compaction in place.

    database ── read transaction ──> pipe ── rate limit ──> file ──> fsync ──> check ──> rename

The copy is a snapshot without free pages. A running node continues during the copy. Its file may grow, because the node
cannot reuse freed pages until the copy is complete. The copy gets its final name after it is on disk and checked. If
this process is killed, the copy is either complete or absent.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from enum import Enum, auto
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from ophion.errors import StorageError
from ophion.native.exceptions import NativeError, translated
from ophion.native.store import Store, open_store
from ophion.node.datadir import (
    DATA_FILE,
    LOCK_FILE,
    DataDirectory,
    compaction_of,
    forget_compaction,
    mark_layout,
)
from ophion.runtime.operator_files import force_directory, open_private

_PIECE: Final = 1 << 20
_FORCED_EVERY: Final = 32 << 20
"""Bytes between two fsync calls. With longer intervals, each fsync would delay commits of the node."""
_SPARE: Final = 16 << 20
_MAX_FINDINGS: Final = 10


class CopyStep(Enum):
    """A step of a copy, for progress reports."""

    COPYING = auto()
    """The database is being copied; progress counts bytes."""
    CHECKING = auto()
    """The finished copy is being checked; progress counts database entries."""


OnProgress = Callable[[CopyStep, int, int], None]
"""Receives the step, the amount done and the total. If the function raises, the copy stops."""


class CopyResult(Struct, frozen=True):
    """Result of a completed database copy."""

    number: int
    hash: bytes
    size: int
    """Size of the file in bytes."""


def back_up(data_path: Path, target: Path, bytes_a_second: int, checks: bool, on_progress: OnProgress) -> CopyResult:
    """Copy the database of a data path to a new data path. The node may be running.

    The copy does not contain the durable votes of a validator. `bytes_a_second` limits the rate; 0 means no limit.
    After a `StorageError` the target does not exist.
    """
    source = DataDirectory.beside_a_node(data_path)
    _expect_nothing(target)
    partial = target.with_name(target.name + ".partial")
    with closing(source), _held(source.database, fcntl.LOCK_SH), _explained(target):
        partial.parent.mkdir(parents=True, exist_ok=True)
        with DataDirectory.open(partial) as copy:
            _clear(copy.database)
            try:
                copied = _copy(source.store(read_only=True), copy.database, bytes_a_second, checks, on_progress)
                _forget_votes(copy.database)
                mark_layout(copy.database)
                force_directory(copy.database)
                force_directory(partial)
                partial.rename(target)
                force_directory(target.parent)
            except BaseException:
                remove_copy(partial)
                raise
    return copied


def compact(directory: DataDirectory, on_progress: OnProgress) -> tuple[int, CopyResult]:
    """Replace the database by a copy without free pages. Returns the old size and the result of the copy.

    No other process may use the database.
    """
    database = directory.database
    before = (database / DATA_FILE).stat().st_size
    new = compaction_of(database)
    with _held(database, fcntl.LOCK_EX), _explained(database):
        forget_compaction(database)
        new.mkdir(exist_ok=True)
        try:
            copied = _copy(directory.store(read_only=True), new, 0, True, on_progress)
            directory.close_store()
            # delete LMDB's lock file, which belongs to the old database; the next process creates a new lock file
            (database / LOCK_FILE).unlink(missing_ok=True)
            (new / DATA_FILE).replace(database / DATA_FILE)
            force_directory(database)
        finally:
            forget_compaction(database)
    return before, copied


def _copy(store: Store, folder: Path, bytes_a_second: int, checks: bool, on_progress: OnProgress) -> CopyResult:
    with translated():
        total = sum(size for _, _, size in store.usage())
    _check_free_space(folder, total)
    _stream(store, folder / DATA_FILE, bytes_a_second, lambda done: on_progress(CopyStep.COPYING, done, total))
    with closing(open_store(folder, create=False, read_only=True)) as copy, translated():
        findings = []
        if checks:
            findings = damage(copy, _MAX_FINDINGS, on_progress)
        head = copy.head()
    (folder / LOCK_FILE).unlink(missing_ok=True)
    if findings:
        raise StorageError("The copy is not used, because it is damaged:\n" + "\n".join(findings))
    if head is None:
        raise StorageError("There is no chain in the database yet.")
    return CopyResult(head[1], head[0], (folder / DATA_FILE).stat().st_size)


def damage(store: Store, most: int, on_progress: OnProgress) -> list[str]:
    """Check chain, states and private payloads; return at most `most` lines that describe damage."""
    found = store.check(most, lambda done, total: on_progress(CopyStep.CHECKING, done, total))
    # lazy import: this module loads the event loop, which other storage commands do not need
    from ophion.enclave.store_writer import damaged_payloads

    for key in damaged_payloads(store, most - len(found)):
        found.append(
            f"private payload 0x{key.hex()}: what is stored is not what was sealed; `ophion privacy rebuild` forgets"
            " it, and the other members hand it over again"
        )
    return found


def _forget_votes(folder: Path) -> None:
    """Remove the durable votes from a copy, because they are outdated by the time the copy is used.

    A validator without stored votes waits until it cannot contradict its earlier votes. A validator with outdated votes
    would not wait.
    """
    # lazy import: this module imports all consensus modules
    from ophion.producer.vote_store import DURABLE_VOTES_KEY, without_votes

    with closing(open_store(folder, create=False, read_only=True)) as copy, translated():
        record = copy.meta(DURABLE_VOTES_KEY)
    if record:
        with closing(open_store(folder, create=False)) as copy, translated():
            copy.put_meta(DURABLE_VOTES_KEY, without_votes(record))
    (folder / LOCK_FILE).unlink(missing_ok=True)


def _stream(store: Store, target: Path, bytes_a_second: int, on_bytes: Callable[[int], None]) -> None:
    """Write the database into a file through a pipe, which counts bytes and limits the rate."""
    read_end, write_end = os.pipe()
    with ThreadPoolExecutor(1, thread_name_prefix="copy") as executor:
        # the inner `with` closes the pipe before the executor waits for its thread: if writing fails, the reading
        # thread then ends too
        with open(read_end, "rb", buffering=0) as pipe:
            streaming = executor.submit(_read, store, write_end)
            with open(target, "xb", opener=open_private) as file:
                _write(pipe, file, bytes_a_second, on_bytes)
        with translated():
            streaming.result()


def _read(store: Store, write_end: int) -> None:
    try:
        store.copy_to(write_end)
    finally:
        os.close(write_end)


def _write(pipe: BinaryIO, file: BinaryIO, bytes_a_second: int, on_bytes: Callable[[int], None]) -> None:
    began, done, forced = time.monotonic(), 0, 0
    while piece := pipe.read(_PIECE):
        file.write(piece)
        done += len(piece)
        on_bytes(done)
        if done - forced >= _FORCED_EVERY:
            _force(file, forced, done)
            forced = done
        if bytes_a_second:
            time.sleep(max(0.0, began + done / bytes_a_second - time.monotonic()))
    _force(file, forced, done)


def _force(file: BinaryIO, start: int, end: int) -> None:
    file.flush()
    os.fsync(file.fileno())
    if hasattr(os, "posix_fadvise"):
        # drop the pages of the copy from the page cache, because the node needs that cache
        os.posix_fadvise(file.fileno(), start, end - start, os.POSIX_FADV_DONTNEED)


def _expect_nothing(target: Path) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise StorageError(f"{target} is there already, and no directory.")
    if target.is_dir() and any(target.iterdir()):
        raise StorageError(f"The directory {target} is not empty. Name one that does not exist yet.")


def _check_free_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE:
        raise StorageError(f"The copy needs {needed >> 20} MiB, and {folder} has {free >> 20} MiB left.")


def _clear(folder: Path) -> None:
    """Remove the database files of an interrupted copy from the folder, and create the folder if it is missing."""
    for name in (DATA_FILE, LOCK_FILE):
        (folder / name).unlink(missing_ok=True)
    folder.mkdir(exist_ok=True)


def remove_copy(partial: Path) -> None:
    """Remove a partial copy: only the files that a copy writes, and their folders if they are then empty."""
    for name in (f"database/{DATA_FILE}", f"database/{LOCK_FILE}", "database/DATABASE_METADATA.json", "lock"):
        (partial / name).unlink(missing_ok=True)
    for folder in (partial / "database", partial):
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def _held(database: Path, kind: int) -> Iterator[None]:
    """Hold the copy lock, shared for a copy and exclusive for a compaction, so that no compaction replaces the file
    during a copy.
    """
    descriptor = os.open(database, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            what = "is being compacted" if kind == fcntl.LOCK_SH else "is being copied"
            raise StorageError(f"The database in {database} {what}. Wait until that is done.") from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _explained(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
        raise StorageError(f"The copy to {place} failed: {reason}.") from error
    except NativeError as error:
        raise StorageError(f"The copy to {place} failed: {error}") from error
