"""`SnapPeer`: one connection that speaks snap/1, with requests in both directions.

A response belongs to an open request by its id and its code. Late responses are ignored. Unsolicited responses are a
protocol breach. Rust decodes and verifies the content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.requests import RequestFailed
from ophion.peers.peer import Peer
from ophion.peers.snap.messages import (
    ANSWERS,
    MAX_KEY,
    MAX_RESPONSE_BYTES,
    NAME,
    Code,
    GetAccountRange,
    GetByteCodes,
    GetStorageRanges,
    GetTrieNodes,
    Request,
    encode_request,
    response_id,
)
from ophion.peers.snap.request_handler import SnapRequestHandler
from ophion.primitives.types import Hash32

TIMEOUT_S: Final = 15.0
"""Seconds to wait for a response. Other clients answer within ten seconds."""
REQUESTED_BYTES: Final = 512 * 1024
_MAX_LATE: Final = 64
"""Limit of timed-out requests that are remembered. Their late responses are ignored."""


class _Open(Struct):
    answer: Code
    waiter: asyncio.Future[bytes]


class SnapPeer:
    """A peer that serves states of the chain to this node. Implements `Attached`."""

    def __init__(self, peer: Peer, handler: SnapRequestHandler, peers: SnapPeers, timeout_s: float = TIMEOUT_S) -> None:
        """Create the peer. `handler` answers the requests that the peer sends."""
        self.peer = peer
        self._handler = handler
        self._peers = peers
        self._timeout_s = timeout_s
        self._open: dict[int, _Open] = {}
        self._late: dict[int, Code] = {}
        self._next_id = 1

    def __len__(self) -> int:
        """Number of open requests to the peer."""
        return len(self._open)

    # --- Attached (called by the connection) ----------------------------------------------------

    def received(self, code: int, payload: bytes) -> None:
        """Pass a request to the request handler, or complete the open request that a response belongs to."""
        known = Code(code)
        if known in ANSWERS:
            self._handler.received(code, payload)
            return
        request_id = response_id(payload, known)
        found = self._open.get(request_id)
        if found is not None and found.answer is known:
            del self._open[request_id]
            if not found.waiter.done():
                found.waiter.set_result(payload)
        elif self._late.get(request_id) is known:
            del self._late[request_id]
        else:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"unsolicited {known.label}")

    def oversized(self, code: int, size: int) -> None:
        """Disconnect a peer that sends a message above its size limit."""
        self._handler.oversized(code, size)

    def closed(self) -> None:
        """Fail all open requests to the peer."""
        self._handler.closed()
        for found in self._open.values():
            if not found.waiter.done():
                found.waiter.set_exception(RequestFailed(found.answer.label, "the peer has disconnected"))
        self._open.clear()
        self._peers.remove(self)

    # --- requests to the peer -------------------------------------------------------------------

    async def account_range(self, root: Hash32, origin: Hash32, limit: Hash32) -> bytes:
        """Request accounts of a state. Returns the encoded response."""
        return await self._ask(
            Code.GET_ACCOUNT_RANGE, lambda new: GetAccountRange(new, root, origin, limit, REQUESTED_BYTES)
        )

    async def storage_ranges(self, root: Hash32, accounts: list[Hash32], origin: Hash32) -> bytes:
        """Request storage slots of accounts, from `origin` on for the first account. Returns the encoded response."""
        return await self._ask(
            Code.GET_STORAGE_RANGES,
            lambda new: GetStorageRanges(new, root, accounts, origin, MAX_KEY, REQUESTED_BYTES),
        )

    async def byte_codes(self, hashes: list[Hash32]) -> bytes:
        """Request contract codes by hash. Returns the encoded response."""
        return await self._ask(Code.GET_BYTE_CODES, lambda new: GetByteCodes(new, hashes, REQUESTED_BYTES))

    async def trie_nodes(self, root: Hash32, paths: list[list[bytes]]) -> bytes:
        """Request trie nodes of a state. Returns the encoded response."""
        return await self._ask(Code.GET_TRIE_NODES, lambda new: GetTrieNodes(new, root, paths, REQUESTED_BYTES))

    async def _ask(self, code: Code, request: Callable[[int], Request]) -> bytes:
        request_id, answer = self._next_id, ANSWERS[code]
        self._next_id += 1
        waiter: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if not self.peer.is_open or not self.peer.send(NAME, code, encode_request(request(request_id))):
            raise RequestFailed(code.label, "the peer has disconnected")
        self._open[request_id] = _Open(answer, waiter)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await waiter
        except TimeoutError:
            self.peer.penalize()
            raise RequestFailed(code.label, f"no response within {self._timeout_s:g} s") from None
        finally:
            if self._open.pop(request_id, None) is not None:
                self._late[request_id] = answer
                if len(self._late) > _MAX_LATE:
                    del self._late[next(iter(self._late))]

    def __repr__(self) -> str:
        return repr(self.peer)


class SnapPeers:
    """The connected peers that speak snap/1."""

    def __init__(self) -> None:
        self._all: list[SnapPeer] = []

    def __iter__(self) -> Iterator[SnapPeer]:
        """Iterate over a snapshot of the peers."""
        return iter(tuple(self._all))

    def add(self, peer: SnapPeer) -> None:
        """Add a connected peer and raise the size limit of its responses."""
        self._all.append(peer)
        for code in ANSWERS.values():
            peer.peer.limit(NAME, code, MAX_RESPONSE_BYTES)

    def remove(self, peer: SnapPeer) -> None:
        """Remove a peer whose connection has ended."""
        if peer in self._all:
            self._all.remove(peer)
