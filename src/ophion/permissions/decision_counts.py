"""Counts of rule decisions, for metrics."""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

T = TypeVar("T")


class DecisionCounts:
    """Thread-safe counts. Block threads and the event loop record decisions."""

    __slots__ = ("_lock", "permitted", "refused")

    def __init__(self) -> None:
        self.permitted = 0
        self.refused = 0
        self._lock = Lock()

    def record(self, refusal: T | None) -> T | None:
        """Count one decision and return `refusal` unchanged. If `refusal` is None, the decision counts as permitted."""
        self.add(refusal is None, refusal is not None)
        return refusal

    def add(self, permitted: int, refused: int) -> None:
        """Count several rule decisions, by result."""
        with self._lock:
            self.permitted += permitted
            self.refused += refused

    @property
    def asked(self) -> int:
        """Total number of rule decisions."""
        return self.permitted + self.refused
