"""Blobs of pooled transactions, for gossip (EIP-4844).

A block contains a blob transaction without its blobs, but nodes admit the transaction to their pools only with its
blobs. The store has a size limit and evicts the oldest blobs first. A transaction without its blobs stays in the pool.
This node can still include the transaction in its blocks, but no longer sends it to peers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ophion.primitives.types import Hash32

MAX_BYTES: Final = 64 * 1024 * 1024
"""Limit of the blob store in bytes, about 480 blobs."""


class BlobStore:
    """Blob transactions in their network form, by hash, oldest first."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._most = max_bytes
        self._by_hash: dict[Hash32, bytes] = {}
        self.held = 0
        """Number of bytes of all stored transactions with their blobs."""

    def __len__(self) -> int:
        return len(self._by_hash)

    def put(self, hash: Hash32, raw: bytes) -> None:
        """Store the blobs of an admitted transaction."""
        if hash in self._by_hash:
            self._let_go(hash)
        self._by_hash[hash] = raw
        self.held += len(raw)
        while self.held > self._most:
            self._let_go(next(iter(self._by_hash)))

    def get(self, hash: Hash32) -> bytes | None:
        """Return a transaction with its blobs, or None if they were evicted."""
        return self._by_hash.get(hash)

    def keep(self, is_pooled: Callable[[Hash32], bool]) -> None:
        """Drop the blobs of transactions that have left the pool."""
        for hash in [hash for hash in self._by_hash if not is_pooled(hash)]:
            self._let_go(hash)

    def _let_go(self, hash: Hash32) -> None:
        self.held -= len(self._by_hash.pop(hash))
