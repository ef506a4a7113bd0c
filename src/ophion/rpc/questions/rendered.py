"""Large blocks as JSON text, kept for the next who asks.

A block of some thousand transactions takes a millisecond or two to render and is asked for by every explorer and
indexer at about the same time. A block never changes, so its text can be kept by hash; total size bounds the memory.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ophion.native.store import Store
from ophion.primitives.types import Hash32

_WORTH_KEEPING: Final = 64 * 1024
_MOST_BYTES: Final = 16 * 1024 * 1024


class RenderedBlocks:
    """Block objects by hash."""

    def __init__(self, store: Store, with_total_difficulty: bool, most_bytes: int = _MOST_BYTES) -> None:
        self._store = store
        self._with_total_difficulty = with_total_difficulty
        self._texts: OrderedDict[tuple[Hash32, bool], bytes] = OrderedDict()
        self._bytes = 0
        self._most_bytes = most_bytes

    def block(self, block_hash: Hash32, in_full: bool) -> bytes | None:
        """A block object; None when the block is not known."""
        key = (block_hash, in_full)
        text = self._texts.get(key)
        if text is not None:
            self._texts.move_to_end(key)
            return text
        text = self._store.block_json(block_hash, in_full, self._with_total_difficulty)
        if text is not None and _WORTH_KEEPING <= len(text) <= self._most_bytes // 2:
            self._texts[key] = text
            self._bytes += len(text)
            while self._bytes > self._most_bytes:
                self._bytes -= len(self._texts.popitem(last=False)[1])
        return text
