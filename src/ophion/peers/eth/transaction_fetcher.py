"""Fetches transactions that peers announce by hash (networking.md 3.10).

The fetcher waits half a second, because most transactions also arrive in full. Then it requests missing transactions in
batches from one announcer. If that peer does not deliver, the fetcher asks the next announcer. Announcements are
bounded per peer. The fetcher ignores announcements above this limit, and disconnects a peer that continues to announce.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.requests import RequestFailed
from ophion.peers.eth.response_validation import pooled_hash
from ophion.peers.token_bucket import TokenBucket
from ophion.pool.admission import BLOB_TYPE
from ophion.primitives.types import Hash32

MAX_TRACKED: Final = 4096
"""Limit of tracked announcements per peer."""
WAIT_S: Final = 0.5
BATCH_HASHES: Final = 256
BATCH_BYTES: Final = 128 * 1024
_MAX_ANNOUNCERS: Final = 4
_MAX_AT_ONCE: Final = 65_536
_PER_S: Final = 16_384.0
_MAX_UNREAD: Final = 256
"""Number of consecutive ignored messages after which the peer is disconnected."""
_SIZE_TOLERANCE: Final = 8
_FIRST_OF_LISTS: Final = 0xC0
_HIGHEST_TYPE: Final = 4


class _PendingTransaction(Struct):
    """An announced transaction that has not arrived."""

    kind: int | None
    """The announced transaction type; None if it is unknown."""
    size: int
    due: float
    announcers: list[EthPeer]
    is_asked: bool = False


class _Announcer(Struct):
    """The transaction announcements of one peer."""

    tracked: set[Hash32] = field(default_factory=set)
    allowance: TokenBucket = field(default_factory=lambda: TokenBucket(_MAX_AT_ONCE, _PER_S))
    unread: int = 0
    is_asked: bool = False


class TransactionFetcher:
    """Fetches transactions that peers announce by hash."""

    def __init__(
        self, is_new: Callable[[Hash32], bool], deliver: Callable[[EthPeer, list[tuple[Hash32, bytes]]], None]
    ) -> None:
        """Create the transaction fetcher. `is_new` returns whether a transaction is unknown to this node."""
        self._is_new = is_new
        self._deliver = deliver
        self._pending: dict[Hash32, _PendingTransaction] = {}
        self._queue: deque[Hash32] = deque()
        """Pending hashes by due time. May include transactions that have arrived."""
        self._announcers: dict[EthPeer, _Announcer] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._pending)

    def announced(self, peer: EthPeer, payload: bytes) -> None:
        """Handle a NewPooledTransactionHashes message."""
        now = asyncio.get_running_loop().time()
        announcer = self._announcers.setdefault(peer, _Announcer())
        if announcer.allowance.left(now) <= 0:
            announcer.unread += 1
            if announcer.unread > _MAX_UNREAD:
                raise PeerMisbehaved(DisconnectReason.USELESS, "too many transaction announcements")
            return
        announcer.unread = 0
        message = peer.version.read_hashes(payload)
        announcer.allowance.spend(len(message.hashes), now)
        if message.types and max(message.types) > _HIGHEST_TYPE:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"transaction type {max(message.types)}")
        peer.known_transactions.update(message.hashes)
        for kind, size, hash in zip(message.types, message.sizes, message.hashes, strict=True):
            if self._is_new(hash):
                self._track(peer, announcer, hash, _PendingTransaction(kind, size, now + WAIT_S, [peer]))
        self._schedule()

    def _track(self, peer: EthPeer, announcer: _Announcer, hash: Hash32, new: _PendingTransaction) -> None:
        if len(announcer.tracked) >= MAX_TRACKED or hash in announcer.tracked:
            return
        pending = self._pending.get(hash)
        if pending is None:
            self._pending[hash] = new
            self._queue.append(hash)
        elif len(pending.announcers) < _MAX_ANNOUNCERS:
            pending.announcers.append(peer)
        else:
            return
        announcer.tracked.add(hash)

    def arrived(self, hash: Hash32) -> None:
        """Stop tracking a transaction that arrived in full or in a block."""
        pending = self._pending.pop(hash, None)
        if pending is not None:
            for peer in pending.announcers:
                self._announcers[peer].tracked.discard(hash)

    def left(self, peer: EthPeer) -> None:
        """Remove a disconnected peer, and the transactions that no other peer announced."""
        announcer = self._announcers.pop(peer, None)
        if announcer is None:
            return
        for hash in announcer.tracked:
            pending = self._pending[hash]
            pending.announcers.remove(peer)
            if not pending.announcers:
                del self._pending[hash]
        self._schedule()

    def clear(self) -> None:
        """Drop all announcements of transactions."""
        self._pending.clear()
        self._queue.clear()
        for announcer in self._announcers.values():
            announcer.tracked.clear()

    # --- fetching -------------------------------------------------------------------------------

    def _schedule(self) -> None:
        while self._queue and self._queue[0] not in self._pending:
            self._queue.popleft()
        if self._queue and self._timer is None:
            due = self._pending[self._queue[0]].due
            self._timer = asyncio.get_running_loop().call_at(due, self._tick)

    def _tick(self) -> None:
        """Request the due transactions from idle announcers, one batch per peer."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        batches: dict[EthPeer, list[Hash32]] = {}
        sizes: dict[EthPeer, int] = {}
        deferred: list[Hash32] = []
        while self._queue:
            hash = self._queue[0]
            pending = self._pending.get(hash)
            if pending is not None and pending.due > now:
                break
            self._queue.popleft()
            if pending is None or pending.is_asked:
                continue
            peer = self._free_announcer(pending, batches, sizes)
            if peer is None:
                deferred.append(hash)
                continue
            batches.setdefault(peer, []).append(hash)
            sizes[peer] = sizes.get(peer, 0) + pending.size
        # all announcers of the deferred transactions are busy, so `_done` tries again after the next response
        self._queue.extendleft(reversed(deferred))
        for peer, hashes in batches.items():
            self._ask(peer, hashes)
        if not deferred:
            self._schedule()

    def _free_announcer(
        self, pending: _PendingTransaction, batches: dict[EthPeer, list[Hash32]], sizes: dict[EthPeer, int]
    ) -> EthPeer | None:
        for peer in pending.announcers:
            full = len(batches.get(peer, ())) >= BATCH_HASHES or sizes.get(peer, 0) >= BATCH_BYTES
            if not self._announcers[peer].is_asked and not full and peer.peer.is_open:
                return peer
        return None

    def _ask(self, peer: EthPeer, hashes: list[Hash32]) -> None:
        for hash in hashes:
            self._pending[hash].is_asked = True
        self._announcers[peer].is_asked = True
        if not peer.peer.spawn(self._fetch(peer, hashes)):
            self._done(peer, hashes)

    async def _fetch(self, peer: EthPeer, hashes: list[Hash32]) -> None:
        try:
            found = [(pooled_hash(raw), raw) for raw in await peer.pooled(hashes)]
            if not {hash for hash, _ in found} <= set(hashes):
                raise PeerMisbehaved(DisconnectReason.BREACH, "transactions that were not requested")
            for hash, raw in found:
                self._check(peer, hash, raw)
            self._deliver(peer, found)
        except RequestFailed:
            return
        finally:
            self._done(peer, hashes)

    def _check(self, peer: EthPeer, hash: Hash32, raw: bytes) -> None:
        """Compare a transaction's type and size with its announcement. A wrong type is a protocol breach, and so is a
        wrong size of a blob transaction.
        """
        pending = self._pending.get(hash)
        if pending is None or not pending.size or len(pending.announcers) > 1:
            return  # no size was announced, or several peers announced different sizes
        kind = 0 if raw[0] >= _FIRST_OF_LISTS else raw[0]
        if pending.kind != kind:
            raise PeerMisbehaved(
                DisconnectReason.BREACH, f"a transaction of type {kind} was announced with another type"
            )
        if abs(pending.size - len(raw)) > _SIZE_TOLERANCE:
            if kind == BLOB_TYPE:
                raise PeerMisbehaved(DisconnectReason.BREACH, "the size of an announced blob transaction is wrong")
            peer.useless("the size of an announced transaction is wrong")

    def _done(self, peer: EthPeer, hashes: list[Hash32]) -> None:
        """End a fetch. Queues undelivered transactions for the next announcer, or drops them if no announcer is
        left.
        """
        announcer = self._announcers.get(peer)
        if announcer is not None:
            announcer.is_asked = False
        for hash in hashes:
            pending = self._pending.get(hash)
            if pending is None:
                continue
            pending.is_asked = False
            if peer in pending.announcers:
                pending.announcers.remove(peer)
                if announcer is not None:
                    announcer.tracked.discard(hash)
            if pending.announcers:
                self._queue.appendleft(hash)
            else:
                del self._pending[hash]
        if self._timer is None and self._queue:
            self._tick()
