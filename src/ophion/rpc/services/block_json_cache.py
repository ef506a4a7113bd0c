"""Cache of large blocks as JSON text.

Rendering a block of some thousand transactions takes one or two milliseconds, and all explorers and indexers request it
at about the same time. A block never changes, so its hash is the cache key. The total size is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

from ophion.native.store import Store
from ophion.primitives.types import Hash32

_WORTH_KEEPING: Final = 64 * 1024
_MAX_BYTES: Final = 16 * 1024 * 1024


class BlockJsonCache:
    """Cache of JSON block objects by hash. Thread-safe, because the event loop and worker threads use it."""

    def __init__(self, store: Store, with_total_difficulty: bool, max_bytes: int = _MAX_BYTES) -> None:
        self._store = store
        self._with_total_difficulty = with_total_difficulty
        self._texts: OrderedDict[tuple[Hash32, bool], bytes] = OrderedDict()
        self._bytes = 0
        self._max_bytes = max_bytes
        self._lock = Lock()

    def get(self, block_hash: Hash32, in_full: bool) -> bytes | None:
        """Return a block object from the cache, or None."""
        with self._lock:
            text = self._texts.get((block_hash, in_full))
            if text is not None:
                self._texts.move_to_end((block_hash, in_full))
            return text

    def block(self, block_hash: Hash32, in_full: bool) -> bytes | None:
        """Return a block object from the cache or the database; None if the block is unknown."""
        text = self.get(block_hash, in_full)
        if text is None:
            text = self._store.block_json(block_hash, in_full, self._with_total_difficulty)
            if text is not None and _WORTH_KEEPING <= len(text) <= self._max_bytes // 2:
                self._keep((block_hash, in_full), text)
        return text

    def _keep(self, key: tuple[Hash32, bool], text: bytes) -> None:
        with self._lock:
            if key not in self._texts:  # another thread may have rendered and stored the same block in the meantime
                self._bytes += len(text)
            self._texts[key] = text
            while self._bytes > self._max_bytes:
                self._bytes -= len(self._texts.popitem(last=False)[1])
