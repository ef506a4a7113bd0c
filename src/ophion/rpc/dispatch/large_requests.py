"""Requests that take much to work with: a few at a time, the others wait as text.

What a parser and a decoder make of a large request is several times its text, and it is kept until the answer is there.
So only a few are taken apart at the same time, in the order of their arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

MOST: Final = 2


class LargeRequests:
    """Who may be taken apart now."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = 0

    def __len__(self) -> int:
        """Those at work, and those that wait."""
        return self._running + len(self._waiting)

    def enter(self, begin: Callable[[], None]) -> None:
        """One more: it begins now or later, and whoever has begun must `leave`."""
        if self._running < self._most:
            self._running += 1
            begin()
        else:
            self._waiting.append(begin)

    def leave(self) -> None:
        """One has ended; the next begins."""
        self._running -= 1
        if self._waiting:
            self._running += 1
            self._waiting.popleft()()

    def give_up(self, begin: Callable[[], None]) -> bool:
        """Somebody does not want to begin any more; whether it had not begun yet."""
        try:
            self._waiting.remove(begin)
        except ValueError:
            return False
        return True
