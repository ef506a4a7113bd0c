"""`StoreWriter`: writes rows of the enclave, many in one commit.

The database has one writer, and every commit waits for the disk. Writes that arrive during a commit share the next
commit. So the latency of the disk does not limit the number of payloads per second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from ophion.errors import StorageError
from ophion.native.enclave import read_sealed
from ophion.native.exceptions import NativeError, translated
from ophion.native.store import Store
from ophion.runtime.thread_pools import Lanes

log = logging.getLogger(__name__)

Change: TypeAlias = tuple[str, bytes, bytes | None]
"""A change of the database: table, key and value of a row. The value None deletes the row."""

PAYLOADS = "payloads"
ARRIVALS = "arrivals"
GROUPS = "groups"
LOOKUP = "lookup"
OUTBOX = "outbox"
CURSORS = "cursors"
UNMARKED = "unmarked"

_CHECKED_AT_ONCE = 256


class _Waiter(NamedTuple):
    """A caller of `write` that waits for the commit of its changes."""

    waiter: asyncio.Future[None]
    settled: Callable[[bool], None] | None


class StoreWriter:
    """Writes the changes of the enclave to the database. All writes of the enclave use this class."""

    def __init__(self, store: Store, lanes: Lanes) -> None:
        self._store = store
        self._lanes = lanes
        self._changes: list[Change] = []
        self._waiting: list[_Waiter] = []
        self._is_busy = False
        self._is_failing = False

    async def write(self, changes: Iterable[Change], settled: Callable[[bool], None] | None = None) -> None:
        """Return when these changes and all earlier changes are durable. Raises `StorageError`.

        `settled` is called with the result as soon as it is known, even if the caller is cancelled.
        """
        loop = asyncio.get_running_loop()
        # give each caller a future, so that cancelling one caller does not cancel the commit of other callers
        waiter: asyncio.Future[None] = loop.create_future()
        self._changes.extend(changes)
        self._waiting.append(_Waiter(waiter, settled))
        if not self._is_busy:
            self._is_busy = True
            # commit in the next iteration of the event loop, so that all writes of this iteration share the commit
            loop.call_soon(self._commit)
        await waiter

    def write_soon(self, changes: Iterable[Change]) -> None:
        """Add changes to the next commit, without waiting for the commit."""
        self._changes.extend(changes)
        if self._changes and not self._is_busy:
            self._is_busy = True
            asyncio.get_running_loop().call_soon(self._commit)

    def _commit(self) -> None:
        changes, waiting = self._changes, self._waiting
        if not (changes or waiting):
            self._is_busy = False
            return
        self._changes, self._waiting = [], []
        try:
            working = self._lanes.write.submit(lambda: self._write(changes))
        except RuntimeError:  # the node is stopping, and its worker threads have ended
            _resolve(waiting, asyncio.CancelledError())
            return
        working.add_done_callback(lambda done: self._finished(done, waiting))

    def _write(self, changes: list[Change]) -> None:
        if changes:
            with translated():
                self._store.write_rows(changes)

    def _finished(self, done: asyncio.Future[None], waiting: list[_Waiter]) -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is not None:
            # writes that arrived during the failed commit rely on its changes, so they fail too
            waiting = [*waiting, *self._waiting]
            self._changes, self._waiting = [], []
        self._note(error)
        self._commit()
        _resolve(waiting, error)

    def _note(self, error: BaseException | None) -> None:
        """Log the first of several consecutive write failures."""
        if isinstance(error, StorageError) and not self._is_failing:
            log.error("cannot write private payloads error=%s", error)
        self._is_failing = error is not None


def _resolve(waiting: Iterable[_Waiter], error: BaseException | None) -> None:
    for waiter, settled in waiting:
        if settled is not None:
            settled(error is None)
        if waiter.done():
            continue
        if error is None:
            waiter.set_result(None)
        elif isinstance(error, asyncio.CancelledError):
            waiter.cancel()
        else:
            waiter.set_exception(error)


def numbered(key: bytes, number: int) -> bytes:
    """Return the key of a database row in a table that is ordered by number."""
    return key + number.to_bytes(8, "big")


def number_of(row_key: bytes) -> int:
    """Return the number in a database row key that `numbered` has created."""
    return int.from_bytes(row_key[-8:], "big")


def damaged_payloads(store: Store, most: int) -> list[bytes]:
    """Return at most `most` keys of payloads whose hash differs from their key."""
    found: list[bytes] = []
    after = b""
    while len(found) < most and (rows := store.rows(PAYLOADS, b"", after, _CHECKED_AT_ONCE)):
        found += [key for key, record in rows if not _is_intact(key, record)]
        after = rows[-1][0]
    return found[:most]


def _is_intact(key: bytes, record: bytes) -> bool:
    try:
        return read_sealed(record).key == key
    except NativeError:
        return False
