"""Polling filters of `eth_newFilter` and related methods. Idle filters are removed after ten minutes (json-rpc.md 5.6).

Chain events go to one journal, pool events to another. A filter stores only its read position and finds its matches
when the client polls. So a thousand filters cost no more per block than one. Journals are bounded: a filter that is
polled too rarely loses the oldest entries. After a failed search, the next poll returns the same entries. A journal
without readers is cleared.

Filters belong to the node, not to a connection, and run on the event loop only. Each filter counts against the quota of
the client that installed it (client_quotas.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import Final, Generic, TypeVar

from msgspec import Struct

from ophion.chain.events import ChainEvent, Reorged
from ophion.pool.events import Added, PoolEvent
from ophion.primitives.types import Hash32
from ophion.rpc.errors import FILTER_NOT_FOUND, LOGS_FILTER_NOT_FOUND, TOO_MANY_FILTERS
from ophion.rpc.services.client_quotas import MEBIBYTE, ClientQuotas
from ophion.rpc.services.log_cache import LogCache
from ophion.rpc.services.log_query import LogQuery
from ophion.runtime.clock import Clock, Entropy

IDLE_TIMEOUT_S: Final = 600.0
MAX_FILTERS: Final = 10_000
_IN_USE_S: Final = 60.0
"""A filter polled within this time is in use and is not evicted."""
_ID_BYTES: Final = 16
_CHAIN_ENTRIES: Final = 65_536
_POOL_ENTRIES: Final = 262_144
_WORTH_TRIMMING: Final = 1024
_SHARE: Final = 4
"""Divisor of the limits: one client may use at most a quarter of all filters and of all bytes."""
_MAX_BYTES: Final = 16 * MEBIBYTE

T = TypeVar("T")


class FilterKind(Enum):
    """The kind of results that a filter returns."""

    BLOCKS = "blocks"
    PENDING = "pending"
    LOGS = "logs"


class ChainChange(Struct, frozen=True):
    """A block that joined or left the canonical chain."""

    hash: Hash32
    number: int
    is_removed: bool


class LogChanges(Struct, frozen=True):
    """Blocks whose logs a filter has not delivered yet, in order. After delivery, the caller calls
    `Filters.delivered`.
    """

    filter_id: str
    query: LogQuery
    blocks: tuple[ChainChange, ...]
    """The blocks; some may be outside the range of the query."""
    start: int
    """Journal position of the first entry in `blocks`."""

    def wanted(self, most: int | None = None) -> tuple[ChainChange, ...]:
        """Return those of the first `most` blocks (None: all blocks) that left the chain or are not above `toBlock` of
        the query.
        """
        return tuple(one for one in self.blocks[:most] if one.is_removed or self.query.takes_block(one.number))


class EventJournal(Generic[T]):
    """A bounded event log; positions never repeat."""

    def __init__(self, limit: int) -> None:
        self._entries: deque[T] = deque(maxlen=limit)
        self.end = 0
        """Position after the newest entry of the journal."""

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, entry: T) -> None:
        """Add the newest entry; drop the oldest if the journal is full."""
        self._entries.append(entry)
        self.end += 1

    def since(self, position: int) -> list[T]:
        """Return the entries from a position on, except entries that the full journal has dropped."""
        count = min(self.end - position, len(self._entries))
        return [self._entries[index] for index in range(len(self._entries) - count, len(self._entries))]

    def clear(self) -> None:
        """Drop all entries, when no filter reads the journal."""
        self._entries.clear()

    def forget_before(self, position: int) -> None:
        """Drop the entries before a position, because all filters have read them."""
        while self._entries and self.end - len(self._entries) < position:
            self._entries.popleft()


class _Filter(Struct):
    kind: FilterKind
    query: LogQuery
    position: int
    """Journal position from which the next poll reads."""
    used_at: float
    client: str
    kept_from: int
    """Journal position below which this filter needs no entries, because their logs are delivered."""
    deliveries: int = 0
    """Number of log searches of this filter in progress."""


class Filters:
    """All polling filters that clients have installed."""

    def __init__(self, clock: Clock, entropy: Entropy, most: int = MAX_FILTERS) -> None:
        self._clock = clock
        self._entropy = entropy
        self._quotas = ClientQuotas(most, max(1, most // _SHARE), _MAX_BYTES, _MAX_BYTES // _SHARE)
        self._filters: dict[str, _Filter] = {}
        self._pending = 0
        """Number of filters for pending transactions. If the number is 0, a pool event needs no scan of the filters."""
        self._chain: EventJournal[ChainChange] = EventJournal(_CHAIN_ENTRIES)
        self._pool: EventJournal[Hash32] = EventJournal(_POOL_ENTRIES)
        self.log_cache = LogCache()

    def __len__(self) -> int:
        return len(self._filters)

    # --- chain and pool events -------------------------------------------------------------------

    def on_chain_event(self, event: ChainEvent) -> None:
        """Record the blocks of a chain event for the next poll of each filter."""
        self._expire()  # expire filters here too, because clients that have disconnected never poll
        if not self._filters:
            return
        removed, added = (event.removed, event.added) if isinstance(event, Reorged) else ((), event.blocks)
        for blocks, is_removed in ((removed, True), (added, False)):
            for block in blocks:
                self._chain.append(ChainChange(block.header.hash, block.header.header.number, is_removed))

    def record(self, change: ChainChange) -> None:
        """Record a block that joined or left the canonical chain. Used for changes that are not in chain events."""
        self._expire()
        if self._filters:
            self._chain.append(change)

    def on_pool_event(self, event: PoolEvent) -> None:
        """Record the transactions of a pool event for the next poll of each filter."""
        if self._pending and isinstance(event, Added):
            for item in event.transactions:
                self._pool.append(item.hash)

    # --- requests of clients ---------------------------------------------------------------------

    def install(self, kind: FilterKind, query: LogQuery | None = None, client: str = "") -> str:
        """Install a filter for events from now on.

        At the limit of the client, evicts the longest idle filter of this client; at the total limit, the longest idle
        filter of all clients. Raises `RpcError` if that filter is in use.
        """
        self._expire()
        log_query = query or LogQuery()
        while not self._quotas.fits_client(client, log_query.weight):
            self._evict_first(name for name, one in self._filters.items() if one.client == client)
        while not self._quotas.fits_total(log_query.weight):
            self._evict_first(self._filters)
        filter_id = hex(int.from_bytes(self._entropy.token(_ID_BYTES), "big"))
        journal: EventJournal[ChainChange] | EventJournal[Hash32] = (
            self._pool if kind is FilterKind.PENDING else self._chain
        )
        self._filters[filter_id] = _Filter(kind, log_query, journal.end, self._clock.monotonic(), client, journal.end)
        self._pending += kind is FilterKind.PENDING
        self._quotas.keep(client, log_query.weight)
        return filter_id

    def uninstall(self, filter_id: str) -> bool:
        """Remove a filter; return whether the filter existed. The id must match exactly as text."""
        self._expire()
        return self._remove(filter_id)

    def changes(self, filter_id: str) -> list[Hash32] | LogChanges:
        """Return what is new since the last call: hashes of blocks or transactions, or the blocks to search for
        logs.
        """
        found = self._use(filter_id)
        if found is None:
            raise FILTER_NOT_FOUND()
        if found.kind is FilterKind.PENDING:
            hashes = self._pool.since(found.position)
            found.position = found.kept_from = self._pool.end
            self._trim()
            return hashes
        entries, found.position = tuple(self._chain.since(found.position)), self._chain.end
        if found.kind is FilterKind.LOGS:
            found.deliveries += 1
            return LogChanges(filter_id, found.query, entries, found.position - len(entries))
        found.kept_from = found.position
        self._trim()
        return [entry.hash for entry in entries if not entry.is_removed]

    def delivered(self, changes: LogChanges, count: int) -> None:
        """Record that the logs of the first `count` blocks were returned. The next poll starts after these blocks."""
        found = self._filters.get(changes.filter_id)
        if found is None:
            return
        found.deliveries -= 1
        found.position = min(found.position, changes.start + count)
        if not found.deliveries:
            found.kept_from = found.position
        self._trim()

    def find(self, filter_id: str) -> LogQuery | None:
        """Return the query of a filter, or None if the filter does not exist. Counts as a use of the filter."""
        found = self._use(filter_id)
        return None if found is None else found.query

    def log_query(self, filter_id: str) -> LogQuery:
        """Return the query of a log filter. Counts as a use of the filter."""
        found = self._use(filter_id)
        if found is None or found.kind is not FilterKind.LOGS:
            raise LOGS_FILTER_NOT_FOUND()
        return found.query

    # --- eviction --------------------------------------------------------------------------------

    def _use(self, filter_id: str) -> _Filter | None:
        self._expire()
        found = self._filters.get(filter_id)
        if found is not None:
            found.used_at = self._clock.monotonic()
            # move the filter to the end, so that the filters are ordered by last use and expiry checks only the first
            # filters
            self._filters[filter_id] = self._filters.pop(filter_id)
        return found

    def _expire(self) -> None:
        oldest = self._clock.monotonic() - IDLE_TIMEOUT_S
        while self._filters:
            filter_id, first = next(iter(self._filters.items()))
            if first.used_at > oldest:
                return
            self._remove(filter_id)

    def _remove(self, filter_id: str) -> bool:
        found = self._filters.pop(filter_id, None)
        if found is None:
            return False
        self._pending -= found.kind is FilterKind.PENDING
        self._quotas.drop(found.client, found.query.weight)
        if not self._pending:
            self._pool.clear()
        if len(self._filters) == self._pending:
            self._chain.clear()
            self.log_cache.clear()
        return True

    def _evict_first(self, candidates: Iterable[str]) -> None:
        """Evict the first filter of `candidates`, which is the longest idle filter. Raises an error if even this filter
        is in use.
        """
        idlest = next(iter(candidates), None)
        if idlest is None or self._filters[idlest].used_at > self._clock.monotonic() - _IN_USE_S:
            raise TOO_MANY_FILTERS()
        self._remove(idlest)

    def _trim(self) -> None:
        """Drop journal entries that all filters have read, once a long journal justifies a scan of all filters."""
        for journal, is_pool in ((self._chain, False), (self._pool, True)):
            if len(journal) < _WORTH_TRIMMING:
                continue
            kept = [one.kept_from for one in self._filters.values() if (one.kind is FilterKind.PENDING) is is_pool]
            journal.forget_before(min(kept, default=journal.end))
