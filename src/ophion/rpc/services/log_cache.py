"""Cache of the logs of single blocks, by block and query.

Many clients install filters with the same addresses and topics. Each filter reads each new block, and each search
decodes all receipts of the block. With this cache, a block is searched once for each distinct query. The key contains
the hash of the block, so a reorganisation needs no invalidation.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeAlias

from ophion.primitives.types import Address, Hash32
from ophion.rpc.services.log_query import LogQuery, Topics

_MAX_BYTES: Final = 8 * 1024 * 1024
"""Maximum size of the cached lists and their queries in bytes: some thousand queries with a few logs each."""
_MAX_SHARE: Final = 8
"""Divisor of the cache size for one text. A larger text is not stored."""

_Key: TypeAlias = tuple[Hash32, bool, tuple[Address, ...], Topics]


class LogCache:
    """Caches the logs of a block that match a query, as JSON lists. Runs on the event loop only."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self.held_bytes = 0
        self._max_bytes = max_bytes
        self._texts: OrderedDict[_Key, tuple[bytes, int]] = OrderedDict()

    def get(self, block: Hash32, is_removed: bool, query: LogQuery) -> bytes | None:
        """Return the logs of a block that match a query, or None if they are not stored."""
        found = self._texts.get((block, is_removed, query.addresses, query.topics))
        return None if found is None else found[0]

    def keep(self, block: Hash32, is_removed: bool, query: LogQuery, text: bytes) -> None:
        """Store logs. Evicts the oldest entries, which belong to older blocks."""
        size = len(text) + query.weight
        key = (block, is_removed, query.addresses, query.topics)
        if size > self._max_bytes // _MAX_SHARE or key in self._texts:
            return
        self._texts[key] = text, size
        self.held_bytes += size
        while self.held_bytes > self._max_bytes:
            self.held_bytes -= self._texts.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Drop all entries, when there are no filters."""
        self._texts.clear()
        self.held_bytes = 0
