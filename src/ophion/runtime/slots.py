"""Slots of a bounded resource. If no slot is free, a single request fails, and a request of a batch waits.

A batch has only a few requests in the queue at a time. All batches together use at most half of the slots, so single
requests find a free slot while batches wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar

WAITS_FOR_SLOT: ContextVar[bool] = ContextVar("waits_for_slot", default=False)
"""Whether the current request belongs to a batch and therefore waits for a slot. The tasks of the request inherit the
value.
"""


class Slots:
    """Counts the slots in use. Waiting requests get slots in order of arrival."""

    def __init__(self, limit: int | None) -> None:
        """Create the slots. `limit` is their number; None for no limit."""
        self.limit = limit
        self.used = 0
        self._used_by_batches = 0
        self._max_for_batches = None if limit is None else max(1, limit // 2)
        self._queue: deque[asyncio.Future[None]] = deque()

    def enter(self) -> bool:
        """Take a slot. Returns False if no slot is free."""
        if self.limit is not None and self.used >= self.limit:
            return False
        self.used += 1
        return True

    def leave(self, in_batch: bool = False) -> None:
        """Free a slot. `in_batch` means that `wait` took the slot."""
        self.used -= 1
        if in_batch:
            self._used_by_batches -= 1
        while self._queue and self._is_free_for_batches:
            waiter = self._queue.popleft()
            # skip a waiter that is done already: it was cancelled, and its task has not run yet
            if not waiter.done():
                self._take_for_batch()
                waiter.set_result(None)

    async def wait(self) -> None:
        """Wait for a free slot and take it, for a request of a batch."""
        if not self._queue and self._is_free_for_batches:
            self._take_for_batch()
            return
        waiter = asyncio.get_running_loop().create_future()
        self._queue.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self.leave(in_batch=True)
            elif waiter in self._queue:
                self._queue.remove(waiter)
            raise

    @property
    def _is_free_for_batches(self) -> bool:
        if self.limit is None or self._max_for_batches is None:
            return True
        return self.used < self.limit and self._used_by_batches < self._max_for_batches

    def _take_for_batch(self) -> None:
        self.used += 1
        self._used_by_batches += 1
