"""How often rules of one kind were asked, and what they said: for metrics."""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

T = TypeVar("T")


class DecisionCounts:
    """Counts; blocks are judged in threads of their own, beside those who ask on the loop."""

    __slots__ = ("_lock", "permitted", "refused")

    def __init__(self) -> None:
        self.permitted = 0
        self.refused = 0
        self._lock = Lock()

    def note(self, refusal: T | None) -> T | None:
        """One more, handed on."""
        self.add(refusal is None, refusal is not None)
        return refusal

    def add(self, permitted: int, refused: int) -> None:
        """Some more."""
        with self._lock:
            self.permitted += permitted
            self.refused += refused

    @property
    def asked(self) -> int:
        """All of them."""
        return self.permitted + self.refused
