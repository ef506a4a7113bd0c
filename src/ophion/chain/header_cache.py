"""Cache of decoded headers by hash.

Verification reads the same few hundred headers repeatedly: parents, ancestors for ommers, Clique snapshots. Decoding a
header costs as much as thirty lookups. Threads may share the cache, because `lru_cache` is thread-safe and headers are
immutable.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ophion.native.store import Store
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Hash32

_MAX_HEADERS: Final = 512
"""Maximum number of cached headers. A header takes about three kilobytes."""


class HeaderCache:
    """Headers of committed blocks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._load = lru_cache(maxsize=_MAX_HEADERS)(self._read)

    def get(self, block_hash: Hash32) -> HashedHeader | None:
        """Return the committed header with this hash on any branch, or None."""
        try:
            return self._load(block_hash)
        except KeyError:
            return None

    def _read(self, block_hash: Hash32) -> HashedHeader:
        raw = self._store.header(block_hash)
        if raw is None:
            # raise an exception instead of returning None: `lru_cache` would cache None, and the header may be
            # committed later
            raise KeyError(block_hash)
        return HashedHeader(Header.decode(raw), block_hash)
