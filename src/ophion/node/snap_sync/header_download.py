"""Requests consecutive headers from one peer, several requests at a time, and passes the headers on in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from ophion.peers.eth.messages import GetHeaders
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.requests import RequestFailed
from ophion.peers.sync.header_requests import STRETCH
from ophion.primitives.header import HashedHeader

MAX_HEADERS: Final = 512
"""Number of headers in one request. A peer may send fewer, but at least `STRETCH`."""
MAX_OPEN: Final = 3
"""Maximum number of open requests. A peer has five request slots; two stay free for other requests."""


async def download_headers(
    peer: EthPeer, first: int, last: int, received: Callable[[list[HashedHeader]], Awaitable[None]]
) -> None:
    """Request the headers from the number `first` to `last`, and await `received` with each response, in order.

    Raises `RequestFailed` if the peer does not have these headers.
    """
    size, after = MAX_HEADERS, first
    open_requests: deque[tuple[int, asyncio.Task[list[HashedHeader]]]] = deque()
    try:
        while first <= last:
            while len(open_requests) < MAX_OPEN and after <= last:
                count = min(size, last + 1 - after)
                open_requests.append((count, asyncio.create_task(peer.headers(GetHeaders(after, count)))))
                after += count
            count, request = open_requests.popleft()
            headers = await request
            if len(headers) < min(count, STRETCH):
                peer.useless("it sent only a part of the requested headers")
            if not headers:
                raise RequestFailed("headers", f"the peer does not have header {first}")
            await received(headers)
            first += len(headers)
            if len(headers) < count:
                # the response has fewer headers than requested: cancel the open requests, and continue after its last
                # header
                size, after = max(len(headers), STRETCH), first
                _cancel(open_requests)
    finally:
        _cancel(open_requests)


def _cancel(open_requests: deque[tuple[int, asyncio.Task[list[HashedHeader]]]]) -> None:
    for _, request in open_requests:
        request.cancel()
    open_requests.clear()
