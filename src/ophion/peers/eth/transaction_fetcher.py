"""Transactions that peers announce by hash, fetched from one of them (networking.md 3.10).

An announced transaction is expected to come in full from somebody within half a second. What has not come by then is
asked for from a peer that announced it, some hundred at a time, and from the next one when that peer does not deliver.
What a peer announces is bounded: beyond that it is not remembered, and a peer that goes on without end is cut off.
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
"""Announcements of one peer that wait to be fetched."""
WAIT_S: Final = 0.5
BATCH_HASHES: Final = 256
BATCH_BYTES: Final = 128 * 1024
_MAX_ANNOUNCERS: Final = 4
_MAX_AT_ONCE: Final = 65_536
_PER_S: Final = 16_384.0
_MAX_UNREAD: Final = 256
"""Messages ignored in a row before the peer is cut off."""
_SIZE_TOLERANCE: Final = 8
_FIRST_OF_LISTS: Final = 0xC0
_HIGHEST_TYPE: Final = 4


class _Wanted(Struct):
    """A transaction that nobody has sent yet."""

    kind: int | None
    """Its type, where the announcement said so."""
    size: int
    due: float
    announcers: list[EthPeer]
    is_asked: bool = False


class _Announcer(Struct):
    """What one peer has announced."""

    tracked: set[Hash32] = field(default_factory=set)
    allowance: TokenBucket = field(default_factory=lambda: TokenBucket(_MAX_AT_ONCE, _PER_S))
    unread: int = 0
    is_asked: bool = False


class TransactionFetcher:
    """Fetches what is announced."""

    def __init__(
        self, is_wanted: Callable[[Hash32], bool], deliver: Callable[[EthPeer, list[tuple[Hash32, bytes]]], None]
    ) -> None:
        """`is_wanted`: whether a transaction is new to this node."""
        self._is_wanted = is_wanted
        self._deliver = deliver
        self._wanted: dict[Hash32, _Wanted] = {}
        self._queue: deque[Hash32] = deque()
        """Wanted ones in the order of their time; some may have come meanwhile."""
        self._announcers: dict[EthPeer, _Announcer] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._wanted)

    def announced(self, peer: EthPeer, payload: bytes) -> None:
        """A peer says what it has."""
        now = asyncio.get_running_loop().time()
        announcer = self._announcers.setdefault(peer, _Announcer())
        if announcer.allowance.left(now) <= 0:
            announcer.unread += 1
            if announcer.unread > _MAX_UNREAD:
                raise PeerMisbehaved(DisconnectReason.USELESS, "announcements without end")
            return
        announcer.unread = 0
        message = peer.version.read_hashes(payload)
        announcer.allowance.spend(len(message.hashes), now)
        if message.types and max(message.types) > _HIGHEST_TYPE:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"transaction type {max(message.types)}")
        peer.known_transactions.update(message.hashes)
        for kind, size, hash in zip(message.types, message.sizes, message.hashes, strict=True):
            if self._is_wanted(hash):
                self._track(peer, announcer, hash, _Wanted(kind, size, now + WAIT_S, [peer]))
        self._schedule()

    def _track(self, peer: EthPeer, announcer: _Announcer, hash: Hash32, new: _Wanted) -> None:
        if len(announcer.tracked) >= MAX_TRACKED or hash in announcer.tracked:
            return
        wanted = self._wanted.get(hash)
        if wanted is None:
            self._wanted[hash] = new
            self._queue.append(hash)
        elif len(wanted.announcers) < _MAX_ANNOUNCERS:
            wanted.announcers.append(peer)
        else:
            return
        announcer.tracked.add(hash)

    def came(self, hash: Hash32) -> None:
        """A transaction is here, in full or in a block."""
        wanted = self._wanted.pop(hash, None)
        if wanted is not None:
            for peer in wanted.announcers:
                self._announcers[peer].tracked.discard(hash)

    def left(self, peer: EthPeer) -> None:
        """A peer is gone: what only it had is forgotten."""
        announcer = self._announcers.pop(peer, None)
        if announcer is None:
            return
        for hash in announcer.tracked:
            wanted = self._wanted[hash]
            wanted.announcers.remove(peer)
            if not wanted.announcers:
                del self._wanted[hash]
        self._schedule()

    def clear(self) -> None:
        """Forget every announcement."""
        self._wanted.clear()
        self._queue.clear()
        for announcer in self._announcers.values():
            announcer.tracked.clear()

    # --- asking ---------------------------------------------------------------------------------

    def _schedule(self) -> None:
        while self._queue and self._queue[0] not in self._wanted:
            self._queue.popleft()
        if self._queue and self._timer is None:
            due = self._wanted[self._queue[0]].due
            self._timer = asyncio.get_running_loop().call_at(due, self._tick)

    def _tick(self) -> None:
        """Ask every peer that is not asked already for what is due and only waits for it."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        batches: dict[EthPeer, list[Hash32]] = {}
        sizes: dict[EthPeer, int] = {}
        kept: list[Hash32] = []
        while self._queue:
            hash = self._queue[0]
            wanted = self._wanted.get(hash)
            if wanted is not None and wanted.due > now:
                break
            self._queue.popleft()
            if wanted is None or wanted.is_asked:
                continue
            peer = self._free_announcer(wanted, batches, sizes)
            if peer is None:
                kept.append(hash)
                continue
            batches.setdefault(peer, []).append(hash)
            sizes[peer] = sizes.get(peer, 0) + wanted.size
        # those whose announcers are all busy come again when one of them has answered
        self._queue.extendleft(reversed(kept))
        for peer, hashes in batches.items():
            self._ask(peer, hashes)
        if not kept:
            self._schedule()

    def _free_announcer(
        self, wanted: _Wanted, batches: dict[EthPeer, list[Hash32]], sizes: dict[EthPeer, int]
    ) -> EthPeer | None:
        for peer in wanted.announcers:
            full = len(batches.get(peer, ())) >= BATCH_HASHES or sizes.get(peer, 0) >= BATCH_BYTES
            if not self._announcers[peer].is_asked and not full and peer.peer.is_open:
                return peer
        return None

    def _ask(self, peer: EthPeer, hashes: list[Hash32]) -> None:
        for hash in hashes:
            self._wanted[hash].is_asked = True
        self._announcers[peer].is_asked = True
        if not peer.peer.spawn(self._fetch(peer, hashes)):
            self._done(peer, hashes)

    async def _fetch(self, peer: EthPeer, hashes: list[Hash32]) -> None:
        try:
            found = [(pooled_hash(raw), raw) for raw in await peer.pooled(hashes)]
            if not {hash for hash, _ in found} <= set(hashes):
                raise PeerMisbehaved(DisconnectReason.BREACH, "transactions that nobody asked for")
            for hash, raw in found:
                self._check(peer, hash, raw)
            self._deliver(peer, found)
        except RequestFailed:
            return
        finally:
            self._done(peer, hashes)

    def _check(self, peer: EthPeer, hash: Hash32, raw: bytes) -> None:
        """Hold what came against what was announced: whoever is asked for blobs must know what that costs."""
        wanted = self._wanted.get(hash)
        if wanted is None or not wanted.size or len(wanted.announcers) > 1:
            return  # nobody said, or nobody knows who
        kind = 0 if raw[0] >= _FIRST_OF_LISTS else raw[0]
        if wanted.kind != kind:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"a transaction of type {kind} was announced as another")
        if abs(wanted.size - len(raw)) > _SIZE_TOLERANCE:
            if kind == BLOB_TYPE:
                raise PeerMisbehaved(DisconnectReason.BREACH, "the size of an announced blob transaction is wrong")
            peer.useless("the size of an announced transaction is wrong")

    def _done(self, peer: EthPeer, hashes: list[Hash32]) -> None:
        """The peer has answered, or not: what it did not deliver is asked of the next announcer, if there is one."""
        announcer = self._announcers.get(peer)
        if announcer is not None:
            announcer.is_asked = False
        for hash in hashes:
            wanted = self._wanted.get(hash)
            if wanted is None:
                continue
            wanted.is_asked = False
            if peer in wanted.announcers:
                wanted.announcers.remove(peer)
                if announcer is not None:
                    announcer.tracked.discard(hash)
            if wanted.announcers:
                self._queue.appendleft(hash)
            else:
                del self._wanted[hash]
        if self._timer is None and self._queue:
            self._tick()
