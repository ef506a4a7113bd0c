"""Reads block ranges ahead in other threads and yields their batches in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

BlockRange = tuple[int, int]


def read_ahead(ranges: Sequence[BlockRange], read: Callable[[int, int], list[Any]], workers: int) -> Iterator[Any]:
    """Yield the batches of each range. At most `workers` + 1 ranges are held, so memory is bounded.

    Closing the iterator stops the reads.
    """
    if len(ranges) < 2 or workers < 2:
        for first, last in ranges:
            yield from read(first, last)
        return
    ahead: deque[Future[list[Any]]] = deque()
    with ThreadPoolExecutor(workers, "read-ahead") as pool:
        try:
            for first, last in ranges:
                ahead.append(pool.submit(read, first, last))
                if len(ahead) > workers:
                    yield from ahead.popleft().result()
            while ahead:
                yield from ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()
