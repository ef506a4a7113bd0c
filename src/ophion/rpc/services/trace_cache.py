"""Cache of traces of recent blocks and of their transactions.

Explorers and indexers request the trace of a new block several times, and each trace executes the block again. The key
is the hash of the block, so a reorganisation needs no invalidation: the new block has its own hash. The total size is
bounded, and a trace that does not fit is not stored.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final, TypeAlias

from ophion.primitives.types import Hash32
from ophion.rpc.transport.streaming import Source

MAX_RECENT_BLOCKS: Final = 256
"""Number of newest blocks whose traces are stored. An indexer that reads older blocks requests each trace only once."""
_MAX_BYTES: Final = 32 * 1024 * 1024
_MAX_SHARE: Final = 4
"""Divisor of the cache size: a single trace may take at most a quarter of the cache."""

TraceKey: TypeAlias = tuple[Hash32, bytes]
"""Hash of the block and kind of the trace. For the trace of one transaction, the kind begins with the transaction's
index.
"""


class TraceCache:
    """Traces of blocks and transactions, each as the pieces in which it was streamed. Thread-safe, because worker
    threads add entries.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self.max_entry_bytes = max_bytes // _MAX_SHARE
        self.held_bytes = 0
        self._max_bytes = max_bytes
        self._traces: OrderedDict[TraceKey, tuple[bytes, ...]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: TraceKey) -> tuple[bytes, ...] | None:
        """Return the pieces of a trace, or None."""
        with self._lock:
            pieces = self._traces.get(key)
            if pieces is not None:
                self._traces.move_to_end(key)
            return pieces

    def keep(self, key: TraceKey, pieces: tuple[bytes, ...]) -> None:
        """Store a complete trace. Evicts traces that were not requested for the longest time."""
        with self._lock:
            if key in self._traces:  # another request has stored a trace of the same block in the meantime
                return
            self._traces[key] = pieces
            self.held_bytes += sum(map(len, pieces))
            while self.held_bytes > self._max_bytes:
                self.held_bytes -= sum(map(len, self._traces.popitem(last=False)[1]))


class RecordedSource:
    """Produces the pieces of a trace, and stores them in the cache when the trace is complete."""

    def __init__(self, source: Source, cache: TraceCache, key: TraceKey) -> None:
        self._source = source
        self._cache = cache
        self._key = key
        self._pieces: list[bytes] | None = []
        self._size = 0

    def next(self) -> bytes | None:
        piece = self._source.next()
        pieces = self._pieces
        if pieces is not None:
            if piece is None:
                self._cache.keep(self._key, tuple(pieces))
                self._pieces = None
            elif self._size + len(piece) > self._cache.max_entry_bytes:
                self._pieces = None
            else:
                pieces.append(piece)
                self._size += len(piece)
        return piece

    def close(self) -> None:
        self._pieces = None
        self._source.close()


class CachedSource:
    """Produces the pieces of a trace from the cache."""

    def __init__(self, pieces: tuple[bytes, ...]) -> None:
        self._left = iter(pieces)

    def next(self) -> bytes | None:
        return next(self._left, None)

    def close(self) -> None:
        self._left = iter(())
