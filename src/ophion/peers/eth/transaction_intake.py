"""Submits the transactions of one peer to the pool.

Submits one batch at a time, so a peer that sends many transactions delays only its own. The waiting bytes and the rate
of invalid transactions are bounded. Messages above these limits are dropped; too many of them disconnect the peer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ophion.native.crypto import keccak256
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.recent_transactions import RecentTransactions
from ophion.peers.eth.response_validation import read_transactions
from ophion.peers.token_bucket import TokenBucket
from ophion.pool.admission import BLOB_TYPE
from ophion.pool.events import Admission, Origin, Rejected
from ophion.pool.pool import TxPool
from ophion.primitives.types import Hash32
from ophion.runtime.lanes import Lane

MAX_BYTES: Final = 8 * 1024 * 1024
"""Limit of one peer's bytes that wait for the pool."""
_BATCH: Final = 512
_ON_THE_LOOP: Final = 128 * 1024
"""Messages below this size in bytes are split and hashed on the event loop, in about a millisecond."""
_MAX_INVALID: Final = 8_192
_INVALID_PER_S: Final = 512.0
"""Rate limit of invalid transactions per second. Rejecting one takes about 50 microseconds."""
_HARMLESS: Final = frozenset({"known", "underpriced", "nonce-too-low", "not-authorized", "syncing"})
"""Rejections that are not the peer's fault: the transaction is late or a duplicate, or permissions differ."""
_MAX_UNREAD: Final = 256
"""Consecutive dropped messages before the peer is disconnected."""


class TransactionIntake:
    """The transactions of one peer that wait for the pool."""

    def __init__(
        self, peer: EthPeer, pool: TxPool, seen: RecentTransactions, lane: Lane, came: Callable[[Hash32], None]
    ) -> None:
        """`seen` is shared by all peers.

        The intake calls `came` for each arrived transaction, so that the fetcher stops tracking it.
        """
        self._peer = peer
        self._pool = pool
        self._seen = seen
        self._lane = lane
        self._came = came
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._is_busy = False
        self._invalid = TokenBucket(_MAX_INVALID, _INVALID_PER_S)
        self._unread = 0

    def take_message(self, payload: bytes) -> bool:
        """Process a Transactions message. Returns False when the message is dropped."""
        now = asyncio.get_running_loop().time()
        if self._bytes + len(payload) > MAX_BYTES or self._invalid.left(now) <= 0:
            self._unread += 1
            if self._unread > _MAX_UNREAD:
                self._peer.peer.disconnect(DisconnectReason.USELESS, "too many transactions")
            return False
        self._unread = 0
        if len(payload) <= _ON_THE_LOOP:
            self.take(_hashed(read_transactions(payload)))
            return True
        self._bytes += len(payload)
        if not self._peer.peer.spawn(self._take_long(payload)):
            self._bytes -= len(payload)
            return False
        return True

    async def _take_long(self, payload: bytes) -> None:
        try:
            found = await self._lane.run(lambda: _hashed(read_transactions(payload)))
        finally:
            self._bytes -= len(payload)
        self.take(found)

    def take(self, found: Sequence[tuple[Hash32, bytes]]) -> None:
        """Queue the (hash, transaction) pairs that are new for the pool."""
        pool, seen, known = self._pool, self._seen, self._peer.known_transactions
        for hash, raw in found:
            known.add(hash)
            self._came(hash)
            if hash not in seen and pool.get(hash) is None:
                # copies from other peers are ignored from here on
                seen.add(hash)
                self._waiting.append(raw)
                self._bytes += len(raw)
            else:
                pool.duplicates[Origin.REMOTE] += 1
        self._submit()

    def _submit(self) -> None:
        if self._is_busy or not self._waiting:
            return
        batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
        self._is_busy = True
        answer = self._pool.submit(batch, Origin.REMOTE)
        answer.add_done_callback(partial(self._answered, sum(map(len, batch))))

    def _answered(self, size: int, answer: asyncio.Future[list[Admission]]) -> None:
        self._is_busy = False
        self._bytes -= size
        if answer.cancelled() or answer.exception() is not None:
            # the pool is closing or failed to write, which is not this peer's fault
            self._bytes -= sum(map(len, self._waiting))
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
                    # still submit the queued transactions, because copies from other peers were ignored
                    self._peer.peer.disconnect(DisconnectReason.BREACH, f"transaction: {admission.error}")
        self._submit()


def _hashed(raws: Sequence[bytes]) -> list[tuple[Hash32, bytes]]:
    if any(raw[0] == BLOB_TYPE for raw in raws):
        raise PeerMisbehaved(DisconnectReason.BREACH, "unsolicited blob transactions")
    return [(keccak256(raw), raw) for raw in raws]
