"""The request queue of one peer.

Database reads for a peer run in a worker thread, one at a time, so a flood of requests delays only the peer's own
responses.
After the deadline, an empty response is sent, because other clients treat a late response as unsolicited.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ophion.errors import OphionError
from ophion.native.exceptions import translated
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.field_decoding import enclosed, list_of_hashes
from ophion.peers.eth.messages import ANSWERS, Code, GetHeaders, decode_get
from ophion.peers.eth.response_reader import ResponseReader
from ophion.peers.eth.versions import NAME, EthVersion
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.primitives import rlp

log = logging.getLogger(__name__)

ANSWER_S: Final = 4.0
"""Deadline for a response of this node, in seconds. Other clients time out after 5 s."""
MAX_WAITING: Final = 64
"""Limit of queued requests per peer. Other clients have at most five open requests."""
MAX_UNREAD_BYTES: Final = 2 * 1024 * 1024
"""Number of unsent bytes above which the next response waits until the peer has read some bytes."""
_LOOK_S: Final = 0.01
_FEW_HEADERS: Final = 4
"""Maximum number of headers that are read on the event loop, because a thread switch costs more."""


class _Request(Struct, frozen=True):
    code: Code
    request_id: int
    read: Callable[[], bytes]
    due: float


class RequestHandler:
    """Responds to the requests of one peer."""

    def __init__(self, peer: Peer, version: EthVersion, answers: ResponseReader, lane: FairWorkerQueue[Peer]) -> None:
        self._peer = peer
        self._version = version
        self._answers = answers
        self._lane = lane
        self._waiting: deque[_Request] = deque()
        self._is_running = False

    def asked(self, code: Code, payload: bytes) -> None:
        """Respond to a request now, or queue the request."""
        request_id, body = decode_get(payload, code)
        if code is Code.GET_POOLED_TRANSACTIONS:
            # answer here and not in a worker thread, because the event loop owns the transaction pool
            hashes = [] if self._peer.waiting_bytes > MAX_UNREAD_BYTES else list_of_hashes(body, code.label)
            self._send(code, request_id, self._answers.pooled(hashes))
            return
        if code is Code.GET_NODE_DATA:
            # this node does not store trie nodes by hash, so its response is always empty
            self._send(code, request_id, rlp.EMPTY_LIST)
            return
        read, is_short = self._reader(code, body)
        if is_short and not self._is_running:
            with translated():
                self._send(code, request_id, read())
            return
        if len(self._waiting) >= MAX_WAITING:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"more than {MAX_WAITING} requests at a time")
        due = asyncio.get_running_loop().time() + ANSWER_S
        self._waiting.append(_Request(code, request_id, read, due))
        if not self._is_running:
            self._is_running = self._peer.spawn(self._answer_all())

    def _reader(self, code: Code, body: bytes) -> tuple[Callable[[], bytes], bool]:
        """Return the function that reads the response to a request, and whether this function is fast enough for the
        event loop.
        """
        if code is Code.GET_BLOCK_HEADERS:
            request = GetHeaders.decode(body)
            return (lambda: self._answers.headers(request)), request.limit <= _FEW_HEADERS and request.skip == 0
        hashes = list_of_hashes(body, code.label)
        if code is Code.GET_BLOCK_BODIES:
            return (lambda: self._answers.bodies(hashes)), False
        return (lambda: self._answers.receipts(hashes, self._version.receipts_have_bloom)), False

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                request = self._waiting.popleft()
                self._send(request.code, request.request_id, await self._answer(request))
        finally:
            self._is_running = False

    async def _answer(self, request: _Request) -> bytes:
        now = asyncio.get_running_loop().time
        while self._peer.waiting_bytes > MAX_UNREAD_BYTES and now() < request.due:  # noqa: ASYNC110  # the peer gives no event
            await asyncio.sleep(_LOOK_S)
        left_s = request.due - now()
        if left_s <= 0:
            return rlp.EMPTY_LIST
        try:
            with translated():
                return await self._lane.run(self._peer, request.read, left_s)
        except OphionError as error:
            log.warning("request of peer failed peer=%r kind=%s error=%s", self._peer, request.code.label, error)
            return rlp.EMPTY_LIST

    def _send(self, code: Code, request_id: int, body: bytes) -> None:
        self._peer.send(NAME, ANSWERS[code], enclosed(request_id, body))
