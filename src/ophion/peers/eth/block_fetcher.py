"""Blocks that peers announce by hash, fetched from one of them (networking.md 3.9).

A block is expected in full from somebody within half a second of its first announcement; then it is asked for, header
first, from those who announced it, one after the other. A missing parent is asked for at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from msgspec import Struct

from ophion.chain.block import empty_body
from ophion.chain.events import ChainBlock
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.eth.messages import GetHeaders
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.requests import RequestFailed
from ophion.primitives.block import HashedHeader
from ophion.primitives.types import Hash32

WAIT_S: Final = 0.5
MAX_TRACKED: Final = 256
"""Announcements of one peer."""
MAX_PASSED_OVER: Final = 1024
"""Announcements of one peer without room for them, before the peer is left: each costs a look into the database."""
_MAX_ANNOUNCERS: Final = 8


class _Wanted(Struct):
    number: int
    announcers: list[EthPeer]
    timer: asyncio.TimerHandle | None = None


class BlockFetcher:
    """Fetches announced blocks."""

    def __init__(
        self,
        spawn: Callable[[Coroutine[Any, Any, None]], bool],
        deliver: Callable[[EthPeer, ChainBlock], Coroutine[Any, Any, None]],
        is_wanted: Callable[[Hash32], bool],
    ) -> None:
        """`is_wanted`: whether a block has neither come nor is on its way."""
        self._spawn = spawn
        self._deliver = deliver
        self._is_wanted = is_wanted
        self._wanted: dict[Hash32, _Wanted] = {}
        self._tracked: dict[EthPeer, int] = {}
        self._passed_over: dict[EthPeer, int] = {}

    def __contains__(self, hash: Hash32) -> bool:
        return hash in self._wanted

    def __len__(self) -> int:
        return len(self._wanted)

    def want(self, hash: Hash32, number: int, peer: EthPeer, wait_s: float = WAIT_S) -> None:
        """A peer has a block that this node does not have."""
        if self._tracked.get(peer, 0) >= MAX_TRACKED:
            self._passed_over[peer] = passed_over = self._passed_over.get(peer, 0) + 1
            if passed_over > MAX_PASSED_OVER:
                peer.peer.disconnect(DisconnectReason.USELESS, "more blocks announced than anybody can look at")
            return
        wanted = self._wanted.get(hash)
        if wanted is None:
            wanted = self._wanted[hash] = _Wanted(number, [])
            wanted.timer = asyncio.get_running_loop().call_later(wait_s, self._fetch_now, hash)
        if peer not in wanted.announcers and len(wanted.announcers) < _MAX_ANNOUNCERS:
            wanted.announcers.append(peer)
            self._tracked[peer] = self._tracked.get(peer, 0) + 1

    def came(self, hash: Hash32) -> None:
        """A block has come by another way."""
        wanted = self._wanted.pop(hash, None)
        if wanted is None:
            return
        if wanted.timer is not None:
            wanted.timer.cancel()
        for peer in wanted.announcers:
            self._untrack(peer)

    def left(self, peer: EthPeer) -> None:
        """A peer is gone."""
        self._passed_over.pop(peer, None)
        if self._tracked.pop(peer, None) is None:
            return
        for hash, wanted in tuple(self._wanted.items()):
            if peer in wanted.announcers:
                wanted.announcers.remove(peer)
                if not wanted.announcers:
                    self.came(hash)

    def _untrack(self, peer: EthPeer) -> None:
        if peer in self._tracked:
            self._tracked[peer] -= 1

    def _fetch_now(self, hash: Hash32) -> None:
        wanted = self._wanted.get(hash)
        if wanted is None:
            return
        wanted.timer = None
        if not self._is_wanted(hash) or not self._spawn(self._fetch(hash)):
            self.came(hash)

    async def _fetch(self, hash: Hash32) -> None:
        try:
            while (wanted := self._wanted.get(hash)) is not None and wanted.announcers:
                peer = wanted.announcers.pop(0)
                self._untrack(peer)
                block = await self._ask(peer, hash, wanted.number)
                if block is not None:
                    self.came(hash)
                    await self._deliver(peer, block)
                    return
        finally:
            self.came(hash)

    async def _ask(self, peer: EthPeer, hash: Hash32, number: int) -> ChainBlock | None:
        try:
            found = await peer.headers(GetHeaders(hash, 1))
            if not found:
                peer.useless("it announced a block that it does not have")
                return None
            header = found[0]
            if header.number != number:
                peer.useless("the number of an announced block is wrong")
                return None
            return await self._complete(peer, header)
        except RequestFailed:
            return None

    async def _complete(self, peer: EthPeer, header: HashedHeader) -> ChainBlock | None:
        body = empty_body(header.header)
        if body is None:
            bodies = await peer.bodies([header])
            if not bodies:
                peer.useless("it announced a block whose body it does not have")
                return None
            body = bodies[0].body
        return ChainBlock(header, body)
