"""Reads block ranges ahead in other threads and yields their batches or tables in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from ophion.data.table_reader import LastTables
from ophion.data.task_threads import Task, TaskThreads

T = TypeVar("T")

BlockRange = tuple[int, int]

MAX_WAITING: Final = 1
"""Maximum number of items of one range that the consumer has not taken."""


class _RangeItems(Generic[T]):
    """The items of one range. The reading thread waits while the consumer has not taken `MAX_WAITING` items."""

    def __init__(self, read: Callable[[], Iterable[T]]) -> None:
        self._read = read
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._is_done = False
        self._is_closed = False

    def fill(self) -> None:
        """Read the range. Items may be large, so each item is read after the consumer has taken the item before."""
        try:
            items = iter(self._read())
            while self._may_read():
                try:
                    item = next(items)
                except StopIteration:
                    break
                with self._changed:
                    self._items.append(item)
                    self._changed.notify_all()
                if isinstance(item, LastTables):
                    # end this range without waiting until the consumer takes the last tables, so that the thread can
                    # read the next range
                    break
                del item
        finally:
            with self._changed:
                self._is_done = True
                self._changed.notify_all()

    def _may_read(self) -> bool:
        """Wait until fewer than `MAX_WAITING` items are left. Returns False after `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._items) < MAX_WAITING)
            return not self._is_closed

    def __iter__(self) -> Iterator[T]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._is_done)
                if not self._items:
                    return
                item = self._items.popleft()
                self._changed.notify_all()
            yield item
            del item  # release the memory before waiting for the next item

    def close(self) -> None:
        """Stop the thread at its next item."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


def read_ahead(
    ranges: Sequence[BlockRange],
    read: Callable[[int, int], Iterable[T]],
    workers: int,
    pool: TaskThreads | None = None,
    waiting: int = 1,
) -> Iterator[T]:
    """Yield the items of each range. At most `workers` + `waiting` ranges are held, with `MAX_WAITING` items each, so
    memory is bounded.

    Closing the iterator stops the reads. `pool` may be shared.
    """
    if pool is None:
        if len(ranges) < 2 or workers < 2:
            for first, last in ranges:
                yield from read(first, last)
            return
        with TaskThreads(workers, "read-ahead") as own:
            yield from read_ahead(ranges, read, workers, own, waiting)
        return
    ahead: deque[tuple[_RangeItems[T], Task[None]]] = deque()
    left = iter(ranges)
    try:
        while True:
            while len(ahead) < workers + waiting and (following := next(left, None)) is not None:
                first, last = following
                items = _RangeItems(lambda first=first, last=last: read(first, last))  # type: ignore[misc]
                ahead.append((items, pool.submit(items.fill)))
            if not ahead:
                return
            items, task = ahead[0]
            yield from items
            task.result()
            ahead.popleft()
    finally:
        for items, _ in ahead:
            items.close()
