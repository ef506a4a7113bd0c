"""Which of the latest hashes somebody has, in bounded memory.

Two generations of sets: when the younger one is full it becomes the older, and what was in the older one is forgotten.
So the memory is bounded, the last half of it is always remembered, and no step costs more than a set does.
"""

from __future__ import annotations

from collections.abc import Iterable

from ophion.primitives.types import Hash32


class RecentHashes:
    """The latest hashes, at least `limit // 2` and at most `limit` of them."""

    __slots__ = ("_half", "_older", "_younger")

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._younger: set[Hash32] = set()
        self._older: set[Hash32] = set()

    def __contains__(self, hash: Hash32) -> bool:
        return hash in self._younger or hash in self._older

    def __len__(self) -> int:
        return len(self._younger | self._older)

    def add(self, hash: Hash32) -> None:
        """Remember a hash."""
        self._younger.add(hash)
        if len(self._younger) >= self._half:
            self._older, self._younger = self._younger, set()

    def update(self, hashes: Iterable[Hash32]) -> None:
        """Remember some hashes."""
        for hash in hashes:
            self.add(hash)

    def discard(self, hash: Hash32) -> None:
        """Forget one."""
        self._younger.discard(hash)
        self._older.discard(hash)

    def clear(self) -> None:
        """Forget everything."""
        self._younger.clear()
        self._older.clear()
