"""`EthPeer`: one connection that speaks eth.

    attach ──> Status sent ──> Status received and checked ──> ready: requests, gossip, and one request for the header
                                                               of the peer's best block, which gives its height

The event loop dispatches messages in order: responses to `Requests`, requests to `RequestHandler`, announcements to the
gossip handlers. No handler blocks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar

from ophion.chain.chain import Chain
from ophion.errors import DecodeError
from ophion.native.exceptions import NativeError
from ophion.native.wire import Receipts
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.known_hashes import RecentHashes
from ophion.peers.eth.messages import (
    ANSWERS,
    MAX_BYTES,
    BlockRange,
    Code,
    GetHeaders,
    Status,
    encode_get_by_hash,
)
from ophion.peers.eth.peer_head import PeerHead
from ophion.peers.eth.request_handler import RequestHandler
from ophion.peers.eth.requests import RequestFailed, Requests, RequestTimedOut
from ophion.peers.eth.response_validation import (
    SizedBody,
    read_bodies,
    read_headers,
    read_receipts,
    read_transactions,
)
from ophion.peers.eth.versions import NAME, EthVersion
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import ZERO_HASH, Hash32

STATUS_S: Final = 5.0
MAX_TIMEOUTS: Final = 5
"""Number of consecutive request timeouts after which the peer is disconnected."""
MAX_USELESS: Final = 5
"""Number of useless responses within `_USELESS_S` seconds after which the peer is disconnected."""
_USELESS_S: Final = 60.0
_KNOWN_BLOCKS: Final = 1024
_KNOWN_TRANSACTIONS: Final = 32_768
_SMALL: Final = 4096
"""Responses below this size in bytes are decoded on the event loop, larger responses in a worker thread."""
_HEAD_ATTEMPTS: Final = 2

T = TypeVar("T")
Handler: TypeAlias = "Callable[[EthPeer, bytes], None]"


class Host(Protocol):
    """Callbacks and resources of the eth protocol that each `EthPeer` uses."""

    @property
    def chain(self) -> Chain: ...

    @property
    def lane(self) -> FairWorkerQueue[Peer]:
        """The lane (worker threads) that decodes responses."""

    @property
    def max_block_bytes(self) -> int:
        """The size limit of announced blocks."""

    def status(self, version: EthVersion) -> Status:
        """The current Status of this node."""

    def problem(self, status: Status, version: EthVersion) -> str | None:
        """Explain why a peer with this Status is incompatible. Returns None when it is compatible."""

    def note_rules(self, peer: EthPeer, status: Status) -> None:
        """Remember the fork rules that a peer announces and this node does not know."""

    def refused(self, headers: Sequence[Header]) -> None:
        """Check whether refused headers prove that the network has moved to QBFT. May run in any thread."""

    def became_ready(self, peer: EthPeer) -> None: ...

    def raised(self, peer: EthPeer) -> None:
        """Called when the known head or the estimated height of the peer has risen."""

    def left(self, peer: EthPeer) -> None: ...


class EthPeer:
    """A peer that speaks the eth protocol."""

    def __init__(
        self, peer: Peer, version: EthVersion, host: Host, requests: RequestHandler, handlers: Mapping[Code, Handler]
    ) -> None:
        self.peer = peer
        self.version = version
        self.requests = Requests(self._send_request, cancelled_timed_out=self._timed_out)
        self.known_blocks = RecentHashes(_KNOWN_BLOCKS)
        self.known_transactions = RecentHashes(_KNOWN_TRANSACTIONS)
        self.status: Status | None = None
        """The peer's Status; None until it arrives."""
        self.head = PeerHead(ZERO_HASH, None, None)
        """The best block that the peer is known to have."""
        self.height = 0
        """Estimated height of the peer's chain."""
        self.response_s = 0.0
        """Longest time in seconds that a response of the peer took."""
        self._host = host
        self._request_handler = requests
        self._handlers = handlers
        self._timeouts = 0
        self._useless: deque[float] = deque(maxlen=MAX_USELESS)

    def start(self) -> None:
        """Send Status. The peer must send its own Status within `STATUS_S` seconds."""
        status = self._host.status(self.version)
        self.peer.send(NAME, Code.STATUS, self.version.write_status(status))
        self.known_blocks.add(status.best_hash)
        self.peer.limit(NAME, Code.NEW_BLOCK, self._host.max_block_bytes)
        self.peer.spawn(self._expect_status())

    @property
    def is_ready(self) -> bool:
        """Whether the peer has sent a valid Status."""
        return self.status is not None

    @property
    def is_usable(self) -> bool:
        """Whether synchronisation may use the peer: it is connected and its best header is known."""
        return self.head.height is not None and self.peer.is_open

    # --- Attached (called by the connection) ----------------------------------------------------

    def received(self, code: int, payload: bytes) -> None:
        """Check one received message and pass it to its handler."""
        if code not in self.version.codes:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"eth/{self.version.number} has no message {code:#04x}")
        kind = Code(code)
        if len(payload) > MAX_BYTES[kind]:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"{kind.label} of {len(payload)} bytes")
        if (kind is Code.STATUS) == self.is_ready:
            problem = "a second Status" if self.is_ready else f"{kind.label} before Status"
            raise PeerMisbehaved(DisconnectReason.BREACH, problem)
        if kind in ANSWERS:
            self._request_handler.asked(kind, payload)
        elif kind is Code.STATUS:
            self._take_status(payload)
        elif kind is Code.BLOCK_RANGE_UPDATE:
            self._take_range(payload)
        elif (handler := self._handlers.get(kind)) is not None:
            handler(self, payload)
        else:
            self.requests.answered(kind, payload)

    def oversized(self, code: int, size: int) -> None:
        """Handle a message over its size limit. The payload of such a message is not decompressed.

        A NewBlock within `MAX_BYTES` is dropped without a disconnect, because the sender's chain may have a higher gas
        limit than the local head. Any other message disconnects the peer.
        """
        if code == Code.NEW_BLOCK and size <= MAX_BYTES[Code.NEW_BLOCK]:
            self.peer.penalize()
        else:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"{Code(code).label} of {size} bytes")

    def closed(self) -> None:
        """Fail the open requests after the connection has ended, and report the end to the host."""
        self.requests.close()
        if self.is_ready:
            self._host.left(self)

    # --- Status and head of the peer ------------------------------------------------------------

    async def _expect_status(self) -> None:
        await asyncio.sleep(STATUS_S)
        if not self.is_ready:
            raise PeerMisbehaved(DisconnectReason.SUBPROTOCOL, f"no Status within {STATUS_S:g} s")

    def _take_status(self, payload: bytes) -> None:
        status = self.version.read_status(payload)
        self._host.note_rules(self, status)
        problem = self._host.problem(status, self.version)
        if problem is not None:
            raise PeerMisbehaved(DisconnectReason.SUBPROTOCOL, problem)
        self.status = status
        self.head = PeerHead(status.best_hash, status.total_difficulty, None)
        known = self._host.chain.header(status.best_hash)
        if known is not None:
            self._seen_head(known)
        else:
            self.peer.spawn(self._ask_for_head(status.best_hash))
        self._host.became_ready(self)

    async def _ask_for_head(self, best: Hash32) -> None:
        """Request the header of the peer's best block. Disconnects a peer that cannot serve this header."""
        for _ in range(_HEAD_ATTEMPTS):
            try:
                found = await self.headers(GetHeaders(best, 1))
            except RequestTimedOut:
                continue
            except RequestFailed:
                return
            if not found:
                raise PeerMisbehaved(DisconnectReason.USELESS, "it does not have its own best block")
            self._seen_head(found[0])
            return
        raise PeerMisbehaved(DisconnectReason.USELESS, "it does not respond to a request for its own best block")

    def _seen_head(self, header: HashedHeader) -> None:
        if self.head.hash == header.hash:
            self.head = PeerHead(header.hash, self.head.total_difficulty, header.number)
        self.raise_height(header.number)

    def _take_range(self, payload: bytes) -> None:
        update = BlockRange.decode(payload)
        if update.earliest > update.latest:
            raise PeerMisbehaved(DisconnectReason.SUBPROTOCOL, f"blocks {update.earliest} to {update.latest}")
        self.raise_head(PeerHead(update.latest_hash, None, update.latest))

    def raise_head(self, head: PeerHead) -> None:
        """Update the head that the peer is known to have, if the new head is better."""
        assert head.height is not None
        own = self.head
        if own.total_difficulty is not None and head.total_difficulty is not None:
            is_better = head.total_difficulty > own.total_difficulty
        else:
            is_better = own.height is None or head.height > own.height
        if is_better:
            self.head = head
        self.raise_height(head.height)
        if is_better:
            self._host.raised(self)

    def raise_height(self, height: int) -> None:
        """Raise the estimated height of the peer."""
        if height > self.height:
            self.height = height
            if self.is_ready:
                self._host.raised(self)

    def has_no_more_than(self, height: int) -> None:
        """Lower the estimated height of the peer after it returned no headers above this height."""
        self.height = max(height, self.head.height or 0)

    # --- requests to the peer -------------------------------------------------------------------

    async def headers(self, request: GetHeaders) -> list[HashedHeader]:
        """Request headers. Returns the validated headers in order; the list may be short or empty."""
        engine, refused = self._host.chain.engine, self._host.refused
        return await self._exchange(
            Code.GET_BLOCK_HEADERS, request.encode, lambda body: read_headers(body, request, engine, refused)
        )

    async def bodies(self, headers: Sequence[HashedHeader]) -> list[SizedBody]:
        """Request bodies. Returns the bodies in order, with recovered senders; the list may be shorter than the
        request.
        """
        hashes = [header.hash for header in headers]
        return await self._exchange(
            Code.GET_BLOCK_BODIES,
            lambda request_id: encode_get_by_hash(request_id, hashes),
            lambda body: read_bodies(body, headers),
        )

    async def receipts(self, headers: Sequence[HashedHeader]) -> list[Receipts]:
        """Request receipts. Returns the verified receipts in order; the list may be shorter than the request."""
        hashes, has_blooms = [header.hash for header in headers], self.version.receipts_have_bloom
        return await self._exchange(
            Code.GET_RECEIPTS,
            lambda request_id: encode_get_by_hash(request_id, hashes),
            lambda body: read_receipts(body, headers, has_blooms),
        )

    async def pooled(self, hashes: list[Hash32]) -> list[bytes]:
        """Request pooled transactions. Returns the transactions that the peer has, in EIP-2718 encoding."""
        return await self._exchange(
            Code.GET_POOLED_TRANSACTIONS,
            lambda request_id: encode_get_by_hash(request_id, hashes),
            read_transactions,
        )

    async def _exchange(self, code: Code, encode: Callable[[int], bytes], read: Callable[[bytes], T]) -> T:
        now = asyncio.get_running_loop().time
        began = now()
        try:
            body = await self.requests.ask(code, encode)
        except RequestTimedOut:
            self._timed_out()
            raise
        finally:
            self.response_s = max(self.response_s, now() - began)
        try:
            value = read(body) if len(body) <= _SMALL else await self._host.lane.run(self.peer, lambda: read(body))
        except (DecodeError, NativeError, PeerMisbehaved) as error:
            # do not raise `PeerMisbehaved`: the caller may be a task of another connection, which would then end
            self.peer.disconnect(DisconnectReason.BREACH, f"{ANSWERS[code].label}: {error}")
            raise RequestFailed(code.label, str(error)) from error
        self._timeouts = 0
        self.peer.reward()
        return value

    def useless(self, why: str) -> None:
        """Count a response that is useless but breaks no rule. Disconnects the peer after too many such responses."""
        self.peer.penalize()
        now = asyncio.get_running_loop().time()
        self._useless.append(now)
        if len(self._useless) == MAX_USELESS and now - self._useless[0] < _USELESS_S:
            self.peer.disconnect(DisconnectReason.USELESS, why)

    def _timed_out(self) -> None:
        self.peer.penalize()
        self._timeouts += 1
        if self._timeouts >= MAX_TIMEOUTS:
            self.peer.disconnect(DisconnectReason.TIMEOUT, f"{MAX_TIMEOUTS} requests without a response")

    def _send_request(self, code: Code, payload: bytes) -> bool:
        return self.peer.is_open and self.peer.send(NAME, code, payload)

    def send(self, code: Code, payload: bytes) -> bool:
        """Send gossip. Returns False if dropped, because the connection has ended or the peer reads too slowly."""
        return self.peer.is_open and self.peer.send(NAME, code, payload, may_drop=True)

    def __repr__(self) -> str:
        return repr(self.peer)
