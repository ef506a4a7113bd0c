"""Transactions that were submitted to the pool recently. The node ignores further copies of them.

A transaction that the pool rejected for a temporary reason (sender not permitted, low balance, gas limit) is removed
after a minute. Other nodes may have kept the transaction and announce it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from ophion.peers.eth.known_hashes import RecentHashes
from ophion.primitives.types import Hash32

AGAIN_S: Final = 60.0
"""Seconds after which a transaction that the pool rejected may enter the pool again."""
PASSING: Final = frozenset(
    {"base-fee", "gas-limit", "gas-price-too-low", "not-authorized", "syncing", "underpriced", "upfront-cost"}
)
"""The pool's temporary reasons for rejecting a transaction. They may no longer apply when the transaction arrives
again.
"""


class RecentTransactions:
    """Recently submitted transactions, shared by all peers."""

    def __init__(self, limit: int) -> None:
        self._seen = RecentHashes(limit)
        self._refused = RecentHashes(limit)
        self._is_due = False

    def __contains__(self, hash: Hash32) -> bool:
        return hash in self._seen or hash in self._refused

    def has_none(self, hashes: Collection[Hash32]) -> bool:
        """Whether none of the transactions is recent."""
        return self._seen.has_none(hashes) and self._refused.has_none(hashes)

    def update(self, hashes: Collection[Hash32]) -> None:
        """Add several transactions that are submitted to the pool."""
        self._seen.update(hashes)

    def add(self, hash: Hash32) -> None:
        """Add a transaction that is submitted to the pool."""
        self._seen.add(hash)

    def refused(self, hash: Hash32, reason: str) -> None:
        """Schedule the removal of a transaction that the pool rejected for a temporary reason."""
        if reason not in PASSING:
            return
        self._seen.discard(hash)
        self._refused.add(hash)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(AGAIN_S, self._forget_refused)

    def discard(self, hash: Hash32) -> None:
        """Remove a transaction that the pool evicted, so that it is accepted again."""
        self._seen.discard(hash)

    def clear(self) -> None:
        """Forget all recent transactions."""
        self._seen.clear()
        self._refused.clear()

    def _forget_refused(self) -> None:
        self._is_due = False
        self._refused.clear()
