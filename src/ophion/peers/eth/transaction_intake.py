"""Submits the transactions of one peer to the pool.

The intake submits one batch at a time, so a peer that sends many transactions delays only itself. The waiting bytes and
the rate of invalid transactions are bounded. Messages above these limits are dropped, and too many such messages
disconnect the peer.

Unknown peers also share a limit on bytes and on concurrent batches, so their number does not delay validators, static
nodes and permitted nodes. A transaction in the queue of an unknown peer counts as seen only when it is submitted.
Otherwise a peer could delay a transaction by sending it first, behind many others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.recent_transactions import RecentTransactions
from ophion.peers.eth.response_validation import read_hashed_transactions
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.peers.token_bucket import TokenBucket
from ophion.pool.admission import BLOB_TYPE
from ophion.pool.events import Admission, Origin, Rejected
from ophion.pool.pool import TxPool
from ophion.primitives.types import ADDRESS_LENGTH, Address, Hash32

MAX_BYTES: Final = 8 * 1024 * 1024
"""Limit of the bytes of one peer's transactions that are not yet in the pool."""
MAX_UNKNOWN_BYTES: Final = 32 * 1024 * 1024
"""Limit of the bytes of all unknown peers' transactions that are not yet in the pool."""
MAX_UNKNOWN_BATCHES: Final = 2
"""Limit of batches from unknown peers that the pool admits at a time."""
_BATCH: Final = 512
_ON_THE_LOOP: Final = 128 * 1024
"""Messages below this size in bytes are split and hashed on the event loop, in about a millisecond."""
_SHORT_QUEUE: Final = 128 * 1024
"""If the queue of an unknown peer has at most this many bytes, the queued transactions are not fetched from other
peers.
"""
_MAX_INVALID: Final = 8_192
_INVALID_PER_S: Final = 512.0
"""Rate limit of invalid transactions per second. Rejecting a transaction takes about 50 microseconds."""
_HARMLESS: Final = frozenset({"known", "underpriced", "nonce-too-low", "not-authorized", "syncing"})
"""Rejections that are not the peer's fault: the transaction is late or a duplicate, or permissions differ."""
_NOBODY: Final[Address] = bytes(ADDRESS_LENGTH)
"""Stands for the sender of a transaction for which the peer named none."""
_MAX_UNREAD: Final = 256
"""Number of consecutive dropped messages after which the peer is disconnected."""


class IntakeShare:
    """Limits that all unknown peers share: bytes that wait for the pool, and batches that the pool admits at the same
    time.
    """

    def __init__(self, max_bytes: int = MAX_UNKNOWN_BYTES, max_batches: int = MAX_UNKNOWN_BATCHES) -> None:
        self._max_bytes = max_bytes
        self._free = max_batches
        self._waiting: dict[TransactionIntake, None] = {}
        self.held = 0
        """Bytes of all unknown peers' transactions that wait for the pool."""

    def has_space(self, size: int) -> bool:
        """Whether a message of this size may wait for the pool within the shared limit. Always True if no other message
        waits.
        """
        return not self.held or self.held + size <= self._max_bytes

    def enter(self, intake: TransactionIntake) -> bool:
        """Reserve a slot for one batch. Returns False if no slot is free; `leave` calls `intake.submit` when a slot is
        free.
        """
        if not self._free:
            self._waiting[intake] = None
            return False
        self._free -= 1
        return True

    def leave(self) -> None:
        """Release a slot. The next waiting intake with transactions to submit gets it."""
        self._free += 1
        while self._free and self._waiting:
            following = next(iter(self._waiting))
            del self._waiting[following]
            following.submit()


class TransactionIntake:
    """The transactions of one peer that wait for the pool."""

    def __init__(
        self,
        peer: EthPeer,
        pool: TxPool,
        seen: RecentTransactions,
        lane: FairWorkerQueue[Peer],
        came: Callable[[Hash32], None],
        share: Callable[[], IntakeShare | None],
        is_awaiting: Callable[[], bool] = lambda: True,
    ) -> None:
        """Create the transaction intake. `seen` holds the recently submitted transactions of all peers.

        `came` is called for each transaction that arrives, so that the fetcher stops tracking it. While `is_awaiting`
        returns False, the fetcher tracks none, and `came` need not be called. `share` returns the limits that unknown
        peers share, or None for a network member.
        """
        self._peer = peer
        self._pool = pool
        self._seen = seen
        self._lane = lane
        self._came = came
        self._is_awaiting = is_awaiting
        self._share = share
        self._waiting: deque[tuple[Hash32, bytes, bool, Address]] = deque()
        """Queued transactions: hash, encoding, whether this node already ignores copies from other peers, and the
        sender that the peer named.
        """
        self._bytes = 0
        self._shared_bytes: IntakeShare | None = None
        """Shared limit that also counts the waiting bytes of an unknown peer. None for a network member."""
        self._is_busy = False
        self._invalid = TokenBucket(_MAX_INVALID, _INVALID_PER_S)
        self._unread = 0

    def take_message(self, payload: bytes, named: bytes = b"") -> bool:
        """Process a Transactions message. Returns False when the message is dropped.

        `named` has the senders that the peer has named for the transactions, one after the other. They are ignored
        unless there is one for each.
        """
        now = asyncio.get_running_loop().time()
        share = self._share()
        is_full = share is not None and not share.has_space(len(payload))
        if is_full or self._bytes + len(payload) > MAX_BYTES or self._invalid.left(now) <= 0:
            self._unread += 1
            if self._unread > _MAX_UNREAD:
                self._peer.peer.disconnect(DisconnectReason.USELESS, "too many transactions")
            return False
        self._unread = 0
        if len(payload) <= _ON_THE_LOOP:
            self.take(*_hashed(payload), named)
            return True
        self._hold(len(payload))
        if not self._peer.peer.spawn(self._take_long(payload, named)):
            self._hold(-len(payload))
            return False
        return True

    def _hold(self, size: int) -> None:
        """Count bytes that wait for the pool, for this peer and, if the peer is unknown, for all unknown peers
        together.
        """
        if not self._bytes:
            self._shared_bytes = self._share()
        self._bytes += size
        if self._shared_bytes is not None:
            self._shared_bytes.held += size

    async def _take_long(self, payload: bytes, named: bytes) -> None:
        try:
            hashes, raws = await self._lane.run(self._peer.peer, lambda: _hashed(payload))
        finally:
            self._hold(-len(payload))
        self.take(hashes, raws, named)

    def take(self, hashes: Sequence[Hash32], raws: Sequence[bytes], named: bytes = b"") -> None:
        """Queue the transactions that are new for the pool. `hashes` has the hash of each, and `named` the senders that
        the peer has named.
        """
        is_member = self._share() is None
        self._peer.known_transactions.update(hashes)
        if len(named) != len(raws) * ADDRESS_LENGTH:
            named = b""
        are_new = is_member and self._are_new(hashes)
        if are_new and not self._is_busy and not self._waiting and 0 < len(raws) <= _BATCH:
            # fast path of the queue, which tests/unit/peers/eth/test_transaction_intake.py compares
            self._seen.update(hashes)
            size = sum(map(len, raws))
            self._hold(size)
            self._submit(raws, named or None, size, None)
            return
        senders = _addresses(named) if named else (_NOBODY,) * len(raws)
        if are_new:
            # fast path of the loop below, which the same test compares
            self._seen.update(hashes)
            self._waiting.extend(
                [(hash, raw, True, sender) for hash, raw, sender in zip(hashes, raws, senders, strict=True)]
            )
            self._hold(sum(map(len, raws)))
        else:
            self._take_each(hashes, raws, senders, is_member)
        self.submit()

    def _are_new(self, hashes: Sequence[Hash32]) -> bool:
        """Whether all transactions differ, none is seen or pooled, and the fetcher tracks no transaction."""
        return (
            not self._is_awaiting()
            and len(set(hashes)) == len(hashes)
            and self._seen.has_none(hashes)
            and self._pool.has_none(hashes)
        )

    def _take_each(
        self, hashes: Sequence[Hash32], raws: Sequence[bytes], senders: Sequence[Address], is_member: bool
    ) -> None:
        is_short = is_member or self._bytes <= _SHORT_QUEUE
        for hash, raw, sender in zip(hashes, raws, senders, strict=True):
            if is_short:
                self._came(hash)
            if not self._is_new(hash):
                continue
            if is_member:
                # copies of this transaction from other peers are ignored from now on
                self._seen.add(hash)
            self._waiting.append((hash, raw, is_member, sender))
            self._hold(len(raw))

    def _is_new(self, hash: Hash32) -> bool:
        if hash not in self._seen and self._pool.get(hash) is None:
            return True
        self._came(hash)
        self._pool.duplicates[Origin.REMOTE] += 1
        return False

    def _next_batch(self) -> tuple[list[bytes], list[Address]]:
        """Return the next transactions, and the senders that the peer named."""
        batch: list[bytes] = []
        senders: list[Address] = []
        while self._waiting and len(batch) < _BATCH:
            hash, raw, is_seen, sender = self._waiting.popleft()
            if not is_seen:
                if not self._is_new(hash):
                    self._hold(-len(raw))
                    continue
                self._seen.add(hash)
                self._came(hash)
            batch.append(raw)
            senders.append(sender)
        return batch, senders

    def submit(self) -> None:
        """Submit the next batch, unless a batch of this peer is in progress or no shared slot is free."""
        if self._is_busy or not self._waiting:
            return
        share = self._share()
        if share is not None and not share.enter(self):
            return
        batch, senders = self._next_batch()
        if not batch:
            if share is not None:
                share.leave()
            return
        named = b"".join(senders) if any(sender is not _NOBODY for sender in senders) else None
        self._submit(batch, named, sum(map(len, batch)), share)

    def _submit(self, batch: Sequence[bytes], named: bytes | None, size: int, share: IntakeShare | None) -> None:
        self._is_busy = True
        answer = self._pool.submit(batch, Origin.REMOTE, named)
        answer.add_done_callback(partial(self._answered, size, share))

    def _answered(self, size: int, share: IntakeShare | None, answer: asyncio.Future[list[Admission]]) -> None:
        self._is_busy = False
        self._hold(-size)
        if share is not None:
            share.leave()
        if answer.cancelled() or answer.exception() is not None:
            # the pool is closing, or the journal write failed, so do not blame the peer
            self._hold(-sum(len(raw) for _, raw, _, _ in self._waiting))
            self._waiting.clear()
            return
        now = asyncio.get_running_loop().time()
        for admission in answer.result():
            if not isinstance(admission, Rejected):
                continue
            if admission.hash is not None:
                self._seen.refused(admission.hash, admission.error.reason)
            if admission.error.reason not in _HARMLESS:
                self._invalid.spend(1, now)
                if admission.error.reason == "malformed":
                    # disconnect the peer, but still submit its other transactions, because copies of them from other
                    # peers were ignored
                    self._peer.peer.disconnect(DisconnectReason.BREACH, f"transaction: {admission.error}")
        self.submit()


def _hashed(payload: bytes) -> tuple[list[Hash32], list[bytes]]:
    """Return the hashes and the encodings of the transactions in a message."""
    hashes, raws = read_hashed_transactions(payload)
    if BLOB_TYPE in [raw[0] for raw in raws]:
        raise PeerMisbehaved(DisconnectReason.BREACH, "unsolicited blob transactions")
    return hashes, raws


def _addresses(named: bytes) -> list[Address]:
    return [named[at : at + ADDRESS_LENGTH] for at in range(0, len(named), ADDRESS_LENGTH)]
