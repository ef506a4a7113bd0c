"""Transactions that have been through the pool's door lately: nobody's copy of them is looked at again.

What was refused for a reason that may pass (its sender is not permitted yet, cannot pay yet, there is no room for so
much gas) is forgotten after a minute: other nodes hold it, and remind of it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ophion.peers.eth.known_hashes import RecentHashes
from ophion.primitives.types import Hash32

AGAIN_S: Final = 60.0
"""After so long at most, what was refused may come again."""
PASSING: Final = frozenset(
    {"base-fee", "gas-limit", "gas-price-too-low", "not-authorized", "syncing", "underpriced", "upfront-cost"}
)
"""Reasons for a refusal that say nothing about tomorrow."""


class RecentTransactions:
    """The latest of them, shared by all peers."""

    def __init__(self, limit: int) -> None:
        self._seen = RecentHashes(limit)
        self._refused = RecentHashes(limit)
        self._is_due = False

    def __contains__(self, hash: Hash32) -> bool:
        return hash in self._seen or hash in self._refused

    def add(self, hash: Hash32) -> None:
        """It is at the door."""
        self._seen.add(hash)

    def refused(self, hash: Hash32, reason: str) -> None:
        """The pool did not take it."""
        if reason not in PASSING:
            return
        self._seen.discard(hash)
        self._refused.add(hash)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(AGAIN_S, self._forget_refused)

    def discard(self, hash: Hash32) -> None:
        """It had to leave the pool, and may come again."""
        self._seen.discard(hash)

    def clear(self) -> None:
        """Forget everything."""
        self._seen.clear()
        self._refused.clear()

    def _forget_refused(self) -> None:
        self._is_due = False
        self._refused.clear()
