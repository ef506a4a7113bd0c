"""A bounded set of recent hashes, in two generations.

When the younger generation is full, the set drops the older generation, and the younger generation becomes the older
generation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set

from ophion.primitives.types import Hash32


class RecentHashes:
    """The latest hashes, at least `limit // 2` and at most `limit` of them."""

    __slots__ = ("_half", "_newer", "_older")

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._newer: set[Hash32] = set()
        self._older: set[Hash32] = set()

    def __contains__(self, hash: Hash32) -> bool:
        return hash in self._newer or hash in self._older

    def __len__(self) -> int:
        return len(self._newer | self._older)

    def add(self, hash: Hash32) -> None:
        """Add a hash. If the younger generation is full, drop the older generation of hashes."""
        self._newer.add(hash)
        if len(self._newer) >= self._half:
            self._older, self._newer = self._newer, set()

    def update(self, hashes: Collection[Hash32]) -> None:
        """Add several hashes to the set."""
        if len(self._newer) + len(hashes) < self._half:
            self._newer.update(hashes)  # fast path of `add`: the younger generation has space for all hashes
            return
        for hash in hashes:
            self.add(hash)

    def has_none(self, hashes: Iterable[Hash32]) -> bool:
        """Whether none of the hashes is in the set. `hashes` is read twice."""
        return self._newer.isdisjoint(hashes) and self._older.isdisjoint(hashes)

    def among(self, hashes: Set[Hash32]) -> set[Hash32]:
        """Return those of `hashes` that are in the set."""
        found = set(hashes & self._newer)
        if len(found) < len(hashes) and not self._older.isdisjoint(hashes):
            found |= hashes & self._older
        return found

    def discard(self, hash: Hash32) -> None:
        """Remove a hash from the set."""
        self._newer.discard(hash)
        self._older.discard(hash)

    def clear(self) -> None:
        """Remove all hashes from the set."""
        self._newer.clear()
        self._older.clear()
