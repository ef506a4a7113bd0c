"""`RowWriter`: rows of the enclave on their way to disk, many in one commit.

The database has one writer and every commit waits for the disk. Whoever writes while a commit is under way shares the
next one, so a thousand payloads a second cost as many commits as the disk has time for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TypeAlias

from ophion.native.failures import translated
from ophion.native.store import Store
from ophion.runtime.lanes import Lanes

Change: TypeAlias = tuple[str, bytes, bytes | None]
"""Table, key, value; None deletes."""

PAYLOADS = "payloads"
ARRIVALS = "arrivals"
GROUPS = "groups"
LOOKUP = "lookup"
OUTBOX = "outbox"
CURSORS = "cursors"


class RowWriter:
    """The one way of the enclave to the database's writer."""

    def __init__(self, store: Store, lanes: Lanes) -> None:
        self._store = store
        self._lanes = lanes
        self._changes: list[Change] = []
        self._next: asyncio.Future[None] | None = None
        self._is_busy = False

    async def write(self, changes: Iterable[Change]) -> None:
        """Returns when the changes, and all given before, are durable. `StorageError`."""
        # shared with others: nobody who gives up takes it from them
        await asyncio.shield(self.submit(changes))

    def submit(self, changes: Iterable[Change]) -> asyncio.Future[None]:
        """The commit that these changes go along with; it belongs to many and is not to be cancelled."""
        self._changes.extend(changes)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
            if not self._is_busy:
                self._is_busy = True
                # not at once: whoever else comes in this turn of the loop goes along
                asyncio.get_running_loop().call_soon(self._commit)
        return self._next

    def _commit(self) -> None:
        changes, waiting = self._changes, self._next
        if waiting is None:
            self._is_busy = False
            return
        self._changes, self._next = [], None
        try:
            working = self._lanes.write.submit(lambda: self._write(changes))
        except RuntimeError:  # the lanes are closed: the node stops
            waiting.cancel()
            return
        working.add_done_callback(lambda done: self._finished(done, waiting))

    def _write(self, changes: list[Change]) -> None:
        if changes:
            with translated():
                self._store.write_rows(changes)

    def _finished(self, done: asyncio.Future[None], waiting: asyncio.Future[None]) -> None:
        if done.cancelled():
            waiting.cancel()
        elif (error := done.exception()) is not None:
            if not waiting.done():
                waiting.set_exception(error)
                waiting.exception()  # nobody need be waiting any more
        elif not waiting.done():
            waiting.set_result(None)
        self._commit()


def numbered(key: bytes, number: int) -> bytes:
    """The row of a key in tables that are ordered by number."""
    return key + number.to_bytes(8, "big")


def number_of(row_key: bytes) -> int:
    """The number in such a row."""
    return int.from_bytes(row_key[-8:], "big")
