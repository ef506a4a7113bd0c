"""Headers of one peer are passed on in order, however many the peer sends in one response."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from ophion.node.snap_sync.header_download import MAX_HEADERS, MAX_OPEN, download_headers
from ophion.peers.eth.messages import GetHeaders
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.requests import RequestFailed
from ophion.peers.sync.header_requests import STRETCH
from ophion.primitives.header import HashedHeader, Header


def header_of(number: int) -> HashedHeader:
    zero = bytes(32)
    header = Header(zero, zero, bytes(20), zero, zero, zero, bytes(256), 1, number, 0, 0, 0, b"", zero, bytes(8))
    return HashedHeader(header, number.to_bytes(32, "big"))


class Peer:
    """A peer with headers up to a height, which sends at most `most` in one response."""

    def __init__(self, height: int, most: int) -> None:
        self.height = height
        self.most = most
        self.open = 0
        self.most_open = 0
        self.reproaches: list[str] = []

    async def headers(self, request: GetHeaders) -> list[HashedHeader]:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await asyncio.sleep(0.1)
        finally:
            self.open -= 1
        assert isinstance(request.start, int)
        last = min(self.height, request.start + min(request.limit, self.most) - 1)
        return [header_of(number) for number in range(request.start, last + 1)]

    def useless(self, why: str) -> None:
        self.reproaches.append(why)


def fetch(peer: Peer, first: int, last: int) -> list[int]:
    found: list[int] = []

    async def received(headers: list[HashedHeader]) -> None:
        found.extend(header.number for header in headers)

    asyncio.run(download_headers(cast("EthPeer", peer), first, last, received))
    return found


@pytest.mark.parametrize("most", [MAX_HEADERS, STRETCH, 300])
def test_headers_come_in_order(most: int) -> None:
    peer = Peer(3000, most)
    assert fetch(peer, 5, 2900) == list(range(5, 2901))
    assert (peer.open, peer.most_open, peer.reproaches) == (0, MAX_OPEN, [])


def test_few_headers_are_requested_at_once() -> None:
    assert fetch(Peer(20, MAX_HEADERS), 7, 9) == [7, 8, 9]
    assert fetch(Peer(20, MAX_HEADERS), 7, 6) == []


def test_a_peer_without_the_headers_fails_the_download() -> None:
    peer = Peer(600, MAX_HEADERS)
    with pytest.raises(RequestFailed, match="does not have header 601"):
        fetch(peer, 1, 2000)
    assert peer.reproaches
    assert peer.open == 0


def test_a_peer_that_sends_single_headers_is_reproached() -> None:
    peer = Peer(40, 1)
    assert fetch(peer, 1, 4) == [1, 2, 3, 4]
    assert len(peer.reproaches) == 3
