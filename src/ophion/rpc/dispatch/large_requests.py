"""Limits how many large requests run at the same time. Other large requests wait as unparsed text.

A parsed and decoded request takes several times the memory of its text until it is answered. So only a few large
requests are parsed at the same time, in the order of arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

MAX_RUNNING: Final = 2


class LargeRequests:
    """Admits a few large requests at a time."""

    def __init__(self, most: int = MAX_RUNNING) -> None:
        self._most = most
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = 0

    def __len__(self) -> int:
        """Return the number of running and waiting requests."""
        return self._running + len(self._waiting)

    def enter(self, begin: Callable[[], None]) -> None:
        """Call `begin` now, or when a running request calls `leave`. Each request that has begun must call `leave` at
        its end.
        """
        if self._running < self._most:
            self._running += 1
            begin()
        else:
            self._waiting.append(begin)

    def leave(self) -> None:
        """End a running request and start the next waiting request."""
        self._running -= 1
        if self._waiting:
            self._running += 1
            self._waiting.popleft()()

    def give_up(self, begin: Callable[[], None]) -> bool:
        """Remove a waiting request. Returns False if the request has already begun."""
        try:
            self._waiting.remove(begin)
        except ValueError:
            return False
        return True
