"""The snap/1 requests of one peer: queue, limits, responses.

received ─> queue (bounded) ─> token bucket ─> slot ─> lane `peers` ─> response

One request of a peer runs at a time. All peers that are not members share one slot, so that threads of the lane stay
free for blocks and headers. Members need no slot.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from typing import Final

from ophion.errors import DecodeError, OphionError
from ophion.native.exceptions import translated
from ophion.native.store import Store
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.versions import NAME as ETH
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.peers.snap.messages import (
    ANSWERS,
    MAX_BYTES,
    NAME,
    Code,
    GetAccountRange,
    GetByteCodes,
    GetStorageRanges,
    Request,
    decode_request,
)
from ophion.peers.token_bucket import TokenBucket
from ophion.primitives import rlp
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

MAX_RESPONSE_BYTES: Final = 512 * 1024
"""Maximum size of a response in bytes, even if the peer requests more. geth requests this size."""
READ_TIMEOUT_S: Final = 0.5
"""Seconds after which reading stops, and the response contains the entries read so far."""
RESPONSE_TIMEOUT_S: Final = 10.0
"""Seconds after which a queued request gets an empty response. Other clients wait longer."""
MAX_WAITING: Final = 32
"""Maximum number of queued requests per peer."""
MAX_WAITING_BYTES: Final = 512 * 1024
"""Maximum size of the queued requests of a peer. Other clients send one request of each kind at a time."""
MAX_UNREAD_BYTES: Final = 2 * 1024 * 1024
BURST_BYTES: Final = 64 * 1024 * 1024
BYTES_A_SECOND: Final = 16 * 1024 * 1024
"""Limit of response bytes per second for a peer that is not a member."""
COST_BYTES: Final = 8 * 1024
"""Bytes that the rate limit counts for each request, in addition to the response."""
_LOOK_S: Final = 0.01


class SnapRequestHandler:
    """Responds to the requests of one peer. Implements `Attached`."""

    def __init__(
        self,
        peer: Peer,
        store: Store,
        lane: FairWorkerQueue[Peer],
        slot: asyncio.Semaphore,
        is_member: Callable[[Peer], bool],
        clock: Clock,
    ) -> None:
        """Create the handler. `slot` lets one request at a time run for all peers that are not network members."""
        self._peer = peer
        self._store = store
        self._lane = lane
        self._slot = slot
        self._is_member = is_member
        self._clock = clock
        self._waiting: deque[tuple[Code, Request, float, int]] = deque()
        self._waiting_bytes = 0
        self._allowance = TokenBucket(BURST_BYTES, BYTES_A_SECOND)
        self._is_running = False

    def received(self, code: int, payload: bytes) -> None:
        """Queue a request. Raises `PeerMisbehaved` for a peer without eth, for a request above a limit, and for a
        response, because `SnapPeer` handles the responses that this node expects.
        """
        known = Code(code)
        if known not in ANSWERS:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"unsolicited {known.label}")
        if self._peer.version(ETH) is None:
            raise PeerMisbehaved(DisconnectReason.USELESS, "snap without eth")
        if len(payload) > MAX_BYTES[known]:
            self.oversized(code, len(payload))
        if len(self._waiting) >= MAX_WAITING:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"more than {MAX_WAITING} snap requests at a time")
        if self._waiting_bytes + len(payload) > MAX_WAITING_BYTES:
            raise PeerMisbehaved(
                DisconnectReason.BREACH, f"more than {MAX_WAITING_BYTES} bytes of snap requests at a time"
            )
        request, due = decode_request(known, payload), self._clock.monotonic() + RESPONSE_TIMEOUT_S
        self._waiting.append((known, request, due, len(payload)))
        self._waiting_bytes += len(payload)
        if not self._is_running:
            self._is_running = self._peer.spawn(self._answer_all())

    def oversized(self, code: int, size: int) -> None:
        """Disconnect a peer that sends a message above its size limit."""
        raise PeerMisbehaved(DisconnectReason.BREACH, f"{Code(code).label} of {size} bytes")

    def closed(self) -> None:
        """Drop the queued requests."""
        self._waiting.clear()
        self._waiting_bytes = 0

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                code, request, due, size = self._waiting.popleft()
                self._waiting_bytes -= size
                is_member = self._is_member(self._peer)
                if not is_member:
                    await self._pay()
                answer = await self._answer(code, request, due, is_member)
                self._allowance.spend(len(answer) + COST_BYTES, self._clock.monotonic())
                self._peer.send(NAME, ANSWERS[code], answer)
        finally:
            self._is_running = False

    async def _pay(self) -> None:
        """Wait until the rate limit of the peer allows the next response."""
        left = self._allowance.left(self._clock.monotonic())
        if left < 0:
            await asyncio.sleep(-left / BYTES_A_SECOND)

    async def _answer(self, code: Code, request: Request, due: float, is_member: bool) -> bytes:
        while self._peer.waiting_bytes > MAX_UNREAD_BYTES and self._clock.monotonic() < due:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        try:
            async with nullcontext() if is_member else self._slot:
                left_s = due - self._clock.monotonic()
                if left_s > 0:
                    with translated():
                        return await self._lane.run(self._peer, lambda: read_response(self._store, request), left_s)
        except DecodeError:
            raise
        except OphionError as error:
            log.warning("request of peer failed peer=%r kind=%s error=%s", self._peer, code.label, error)
        return empty_response(request)


def read_response(store: Store, request: Request) -> bytes:
    """Read the response to a request from the database."""
    size = min(request.max_bytes, MAX_RESPONSE_BYTES)
    if isinstance(request, GetAccountRange):
        return store.account_range(
            request.request_id, request.root, request.origin, request.limit, size, READ_TIMEOUT_S
        )
    if isinstance(request, GetStorageRanges):
        return store.storage_ranges(
            request.request_id, request.root, request.accounts, request.origin, request.limit, size, READ_TIMEOUT_S
        )
    if isinstance(request, GetByteCodes):
        return store.byte_codes(request.request_id, request.hashes, size, READ_TIMEOUT_S)
    return store.trie_nodes(request.request_id, request.root, request.paths, size, READ_TIMEOUT_S)


def empty_response(request: Request) -> bytes:
    """Return the response without entries, for a state that is not stored or a request that waited too long."""
    lists = 2 if isinstance(request, GetAccountRange | GetStorageRanges) else 1
    return rlp.list_of((rlp.encode_int(request.request_id), *[rlp.EMPTY_LIST] * lists))
