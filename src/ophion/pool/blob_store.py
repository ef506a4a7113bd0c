"""The blobs of pooled transactions, kept so that they can be passed on (EIP-4844).

A block holds a blob transaction without its blobs; other nodes want it with them before it is in a block. Blobs are
large, so all of them together have a limit: beyond it those that have waited longest are let go. Their transactions
stay in the pool and can still be built here; they are only not passed on any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ophion.primitives.types import Hash32

MAX_BYTES: Final = 64 * 1024 * 1024
"""About 480 blobs."""


class Blobs:
    """Blob transactions in the form in which they travel, by hash, oldest first."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._most = max_bytes
        self._by_hash: dict[Hash32, bytes] = {}
        self.held = 0
        """Bytes of all of them."""

    def __len__(self) -> int:
        return len(self._by_hash)

    def put(self, hash: Hash32, raw: bytes) -> None:
        """A blob transaction has entered the pool."""
        if hash in self._by_hash:
            self._let_go(hash)
        self._by_hash[hash] = raw
        self.held += len(raw)
        while self.held > self._most:
            self._let_go(next(iter(self._by_hash)))

    def get(self, hash: Hash32) -> bytes | None:
        """A transaction with its blobs, if they are still here."""
        return self._by_hash.get(hash)

    def keep(self, is_pooled: Callable[[Hash32], bool]) -> None:
        """Some transactions have left the pool: their blobs go too."""
        for hash in [hash for hash in self._by_hash if not is_pooled(hash)]:
            self._let_go(hash)

    def _let_go(self, hash: Hash32) -> None:
        self.held -= len(self._by_hash.pop(hash))
