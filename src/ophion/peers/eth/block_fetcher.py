"""Fetches blocks that peers announce by hash (networking.md 3.9).

A block usually arrives in full within half a second of its first announcement. Then the fetcher requests it, header
first, from the peers that announced it. It asks members first, and one after the other. A missing parent is requested
at once.

Each peer has a bounded number of announcements and of fetches under way. A fetch runs as a task of the connection that
it waits for, so a peer that announces blocks and does not deliver them delays only itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

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
"""Announcements of one peer over that limit before it is disconnected: each costs a database lookup."""
MAX_FETCHES: Final = 3
"""Fetches from one peer at a time; two of its five requests stay free for others."""
_MAX_ANNOUNCERS: Final = 8


class _Wanted(Struct):
    """An announced block that is not here yet."""

    number: int
    announcers: list[EthPeer] = field(default_factory=list)
    """Peers that have not been asked yet."""
    timer: asyncio.TimerHandle | None = None
    asked: list[EthPeer] = field(default_factory=list)
    """Peers that are being asked now."""


class _Announcer(Struct):
    """The announcements of one peer."""

    tracked: int = 0
    passed_over: int = 0
    fetches: int = 0
    due: deque[Hash32] = field(default_factory=deque)
    """Blocks that wait until one of its fetches has ended."""


class BlockFetcher:
    """Fetches announced blocks."""

    def __init__(
        self,
        deliver: Callable[[EthPeer, ChainBlock], None],
        is_here: Callable[[Hash32], bool],
        is_coming: Callable[[Hash32], bool],
        is_member: Callable[[EthPeer], bool],
    ) -> None:
        """`is_here`: the block needs no fetch. `is_coming`: a copy of it is being checked or imported."""
        self._deliver = deliver
        self._is_here = is_here
        self._is_coming = is_coming
        self._is_member = is_member
        self._wanted: dict[Hash32, _Wanted] = {}
        self._announcers: dict[EthPeer, _Announcer] = {}

    def __contains__(self, hash: Hash32) -> bool:
        return hash in self._wanted

    def __len__(self) -> int:
        return len(self._wanted)

    def want(self, hash: Hash32, number: int, peer: EthPeer, wait_s: float = WAIT_S) -> None:
        """Note that a peer has a block that this node does not have."""
        if not peer.peer.is_open:
            return
        announcer = self._announcers.setdefault(peer, _Announcer())
        if announcer.tracked >= MAX_TRACKED:
            announcer.passed_over += 1
            if announcer.passed_over > MAX_PASSED_OVER:
                peer.peer.disconnect(DisconnectReason.USELESS, "more blocks announced than anybody can look at")
            return
        wanted = self._wanted.get(hash)
        if wanted is None:
            wanted = self._wanted[hash] = _Wanted(number)
            self._arm(hash, wanted, wait_s)
        if peer in wanted.announcers or peer in wanted.asked:
            return
        is_member = self._is_member(peer)
        if len(wanted.announcers) >= _MAX_ANNOUNCERS and not is_member:
            return
        wanted.announcers.insert(0 if is_member else len(wanted.announcers), peer)
        announcer.tracked += 1
        if is_member and wanted.timer is None and not any(map(self._is_member, wanted.asked)):
            self._ask_next(hash)  # do not wait for an unknown peer that may never answer

    def came(self, hash: Hash32) -> None:
        """Forget a block: it is here, or no peer is left to ask."""
        wanted = self._wanted.pop(hash, None)
        if wanted is None:
            return
        if wanted.timer is not None:
            wanted.timer.cancel()
        for peer in wanted.announcers:
            self._announcers[peer].tracked -= 1

    def left(self, peer: EthPeer) -> None:
        """A peer is gone."""
        if self._announcers.pop(peer, None) is None:
            return
        for hash, wanted in tuple(self._wanted.items()):
            if peer in wanted.announcers:
                wanted.announcers.remove(peer)
            if peer in wanted.asked:
                wanted.asked.remove(peer)
            if not wanted.announcers and not wanted.asked:
                self.came(hash)
            elif not wanted.asked and wanted.timer is None:
                self._ask_next(hash)

    # --- asking -----------------------------------------------------------------------------------

    def _arm(self, hash: Hash32, wanted: _Wanted, wait_s: float) -> None:
        wanted.timer = asyncio.get_running_loop().call_later(wait_s, self._on_due, hash)

    def _on_due(self, hash: Hash32) -> None:
        wanted = self._wanted.get(hash)
        if wanted is None:
            return
        wanted.timer = None
        if self._is_here(hash):
            self.came(hash)
        elif self._is_coming(hash):
            self._arm(hash, wanted, WAIT_S)  # that copy may turn out to be wrong
        else:
            self._ask_next(hash)

    def _ask_next(self, hash: Hash32) -> None:
        """Ask the first announcer that has a free fetch. Without one the block waits for any of them."""
        wanted = self._wanted[hash]
        for peer in wanted.announcers:
            announcer = self._announcers[peer]
            if announcer.fetches < MAX_FETCHES:
                wanted.announcers.remove(peer)
                announcer.tracked -= 1
                announcer.fetches += 1
                wanted.asked.append(peer)
                if not peer.peer.spawn(self._fetch(peer, hash, wanted.number)):
                    self._ended(peer, hash)
                return
        for peer in wanted.announcers:
            if hash not in self._announcers[peer].due:
                self._announcers[peer].due.append(hash)
        if not wanted.announcers and not wanted.asked:
            self.came(hash)

    async def _fetch(self, peer: EthPeer, hash: Hash32, number: int) -> None:
        try:
            block = await self._ask(peer, hash, number)
            if block is not None and hash in self._wanted:
                self.came(hash)
                self._deliver(peer, block)
        finally:
            self._ended(peer, hash)

    def _ended(self, peer: EthPeer, hash: Hash32) -> None:
        """A fetch is over: go on with the same block elsewhere, and with the next block of the same peer."""
        wanted = self._wanted.get(hash)
        if wanted is not None and peer in wanted.asked:
            wanted.asked.remove(peer)
            if not wanted.asked:
                self._ask_next(hash)
        announcer = self._announcers.get(peer)
        if announcer is None:
            return
        announcer.fetches -= 1
        while announcer.due and announcer.fetches < MAX_FETCHES:
            following = announcer.due.popleft()
            waiting = self._wanted.get(following)
            if waiting is not None and peer in waiting.announcers and not waiting.asked and waiting.timer is None:
                self._ask_next(following)

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
