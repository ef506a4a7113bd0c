"""Transactions that one peer sends, on their way into the pool.

They enter through the pool's one door, some hundred at a time and the next ones when those are answered: a peer that
sends much waits for itself. What waits is bounded in bytes, and so is how many worthless transactions a peer may send;
beyond that its messages are dropped unread, and in the end the peer is.
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
"""Of one peer, read and not yet in the pool."""
_BATCH: Final = 512
_ON_THE_LOOP: Final = 128 * 1024
"""Messages of so many bytes are cut and hashed at once: about a millisecond."""
_MAX_WORTHLESS: Final = 8_192
_WORTHLESS_PER_S: Final = 512.0
"""A transaction costs some 50 microseconds before anything is known against it."""
_HARMLESS: Final = frozenset({"known", "underpriced", "nonce-too-low", "not-authorized", "syncing"})
"""Reasons for a refusal that say nothing against whoever passed the transaction on: it came late, or twice, or its
sender is permitted there and not here."""
_MAX_UNREAD: Final = 256
"""Messages dropped in a row before the peer is."""


class TransactionIntake:
    """What one peer sends."""

    def __init__(
        self, peer: EthPeer, pool: TxPool, seen: RecentTransactions, lane: Lane, came: Callable[[Hash32], None]
    ) -> None:
        """`seen` is shared by all peers.

        `came` is told of each that arrives: nobody needs to fetch it any more.
        """
        self._peer = peer
        self._pool = pool
        self._seen = seen
        self._lane = lane
        self._came = came
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._is_busy = False
        self._worthless = TokenBucket(_MAX_WORTHLESS, _WORTHLESS_PER_S)
        self._unread = 0

    def take_message(self, payload: bytes) -> bool:
        """A message full of transactions; whether somebody looks at it."""
        now = asyncio.get_running_loop().time()
        if self._bytes + len(payload) > MAX_BYTES or self._worthless.left(now) <= 0:
            self._unread += 1
            if self._unread > _MAX_UNREAD:
                self._peer.peer.disconnect(DisconnectReason.USELESS, "more transactions than anybody can look at")
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
        """Transactions with their hashes: those that are new wait for their turn."""
        pool, seen, known = self._pool, self._seen, self._peer.known_transactions
        for hash, raw in found:
            known.add(hash)
            self._came(hash)
            if hash not in seen and pool.get(hash) is None:
                # from here on nobody else's copy is looked at
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
            # the pool is closing, or could not write: not this peer's fault
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
                self._worthless.spend(1, now)
                if admission.error.reason == "malformed":
                    # what it sent before is still looked at: copies of others were passed over because of it
                    self._peer.peer.disconnect(DisconnectReason.BREACH, f"transaction: {admission.error}")
        self._submit()


def _hashed(raws: Sequence[bytes]) -> list[tuple[Hash32, bytes]]:
    if any(raw[0] == BLOB_TYPE for raw in raws):
        raise PeerMisbehaved(DisconnectReason.BREACH, "blobs that nobody has asked for")
    return [(keccak256(raw), raw) for raw in raws]
