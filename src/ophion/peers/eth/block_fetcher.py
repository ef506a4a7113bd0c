"""Fetches blocks that peers announce by hash (networking.md 3.9).

The fetcher waits half a second, because most blocks also arrive as NewBlock. Then it requests the header and the body
from one announcing peer after another, network members (validators, static and permitted nodes) first. A missing parent
is requested without this wait.

Announcements and fetches are bounded per peer. A fetch runs as a task of the peer's connection, so a peer that
announces blocks without delivering delays only its own announcements.
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
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32

WAIT_S: Final = 0.5
MAX_TRACKED: Final = 256
"""Limit of tracked announcements per peer."""
MAX_PASSED_OVER: Final = 1024
"""Number of announcements above `MAX_TRACKED` after which the peer is disconnected. Each announcement costs a database
lookup.
"""
MAX_FETCHES: Final = 3
"""Limit of concurrent fetches per peer. A peer has five request slots; two stay free for other requests."""
_MAX_ANNOUNCERS: Final = 8


class _PendingBlock(Struct):
    """A block that peers have announced and that has not arrived."""

    number: int
    announcers: list[EthPeer] = field(default_factory=list)
    """Announcing peers that the fetcher has not asked yet."""
    timer: asyncio.TimerHandle | None = None
    asked: list[EthPeer] = field(default_factory=list)
    """Peers with an open fetch for this block."""


class _Announcer(Struct):
    """The block announcements of one peer."""

    tracked: int = 0
    passed_over: int = 0
    fetches: int = 0
    due: deque[Hash32] = field(default_factory=deque)
    """Blocks that wait until this peer has a free fetch slot."""


class BlockFetcher:
    """Fetches blocks that peers announce by hash."""

    def __init__(
        self,
        deliver: Callable[[EthPeer, ChainBlock], None],
        is_here: Callable[[Hash32], bool],
        is_coming: Callable[[Hash32], bool],
        is_member: Callable[[EthPeer], bool],
    ) -> None:
        """Create the block fetcher. `is_here` returns whether a block is in the chain or known to be invalid.
        `is_coming` returns whether a copy of the block is being verified or imported.
        """
        self._deliver = deliver
        self._is_here = is_here
        self._is_coming = is_coming
        self._is_member = is_member
        self._pending: dict[Hash32, _PendingBlock] = {}
        self._announcers: dict[EthPeer, _Announcer] = {}

    def __contains__(self, hash: Hash32) -> bool:
        return hash in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def want(self, hash: Hash32, number: int, peer: EthPeer, wait_s: float = WAIT_S) -> None:
        """Track an announced block that this node does not have."""
        if not peer.peer.is_open:
            return
        announcer = self._announcers.setdefault(peer, _Announcer())
        if announcer.tracked >= MAX_TRACKED:
            announcer.passed_over += 1
            if announcer.passed_over > MAX_PASSED_OVER:
                peer.peer.disconnect(DisconnectReason.USELESS, "too many block announcements")
            return
        pending = self._pending.get(hash)
        if pending is None:
            pending = self._pending[hash] = _PendingBlock(number)
            self._arm(hash, pending, wait_s)
        if peer in pending.announcers or peer in pending.asked:
            return
        is_member = self._is_member(peer)
        if len(pending.announcers) >= _MAX_ANNOUNCERS and not is_member:
            return
        pending.announcers.insert(0 if is_member else len(pending.announcers), peer)
        announcer.tracked += 1
        if is_member and pending.timer is None and not any(map(self._is_member, pending.asked)):
            # a member peer announces the block: ask this peer too, because the unknown peers asked so far may never
            # respond
            self._ask_next(hash)

    def arrived(self, hash: Hash32) -> None:
        """Stop tracking a block that has arrived, or for which no peer is left to ask."""
        pending = self._pending.pop(hash, None)
        if pending is None:
            return
        if pending.timer is not None:
            pending.timer.cancel()
        for peer in pending.announcers:
            self._announcers[peer].tracked -= 1

    def left(self, peer: EthPeer) -> None:
        """Remove a disconnected peer, and ask other announcers for its blocks."""
        if self._announcers.pop(peer, None) is None:
            return
        for hash, pending in tuple(self._pending.items()):
            if peer in pending.announcers:
                pending.announcers.remove(peer)
            if peer in pending.asked:
                pending.asked.remove(peer)
            if not pending.announcers and not pending.asked:
                self.arrived(hash)
            elif not pending.asked and pending.timer is None:
                self._ask_next(hash)

    # --- fetching ---------------------------------------------------------------------------------

    def _arm(self, hash: Hash32, pending: _PendingBlock, wait_s: float) -> None:
        pending.timer = asyncio.get_running_loop().call_later(wait_s, self._on_due, hash)

    def _on_due(self, hash: Hash32) -> None:
        pending = self._pending.get(hash)
        if pending is None:
            return
        pending.timer = None
        if self._is_here(hash):
            self.arrived(hash)
        elif self._is_coming(hash):
            # a copy of the block is being verified and may be invalid, so check again later
            self._arm(hash, pending, WAIT_S)
        else:
            self._ask_next(hash)

    def _ask_next(self, hash: Hash32) -> None:
        """Fetch a block from the first announcer with a free fetch slot. If all announcers are busy, queue the block at
        each announcer. If none is left, stop tracking the block.
        """
        pending = self._pending[hash]
        for peer in pending.announcers:
            announcer = self._announcers[peer]
            if announcer.fetches < MAX_FETCHES:
                pending.announcers.remove(peer)
                announcer.tracked -= 1
                announcer.fetches += 1
                pending.asked.append(peer)
                if not peer.peer.spawn(self._fetch(peer, hash, pending.number)):
                    self._ended(peer, hash)
                return
        for peer in pending.announcers:
            if hash not in self._announcers[peer].due:
                self._announcers[peer].due.append(hash)
        if not pending.announcers and not pending.asked:
            self.arrived(hash)

    async def _fetch(self, peer: EthPeer, hash: Hash32, number: int) -> None:
        try:
            block = await self._ask(peer, hash, number)
            if block is not None and hash in self._pending:
                self.arrived(hash)
                self._deliver(peer, block)
        except GeneratorExit:  # the event loop has ended, so start no further fetch
            raise
        except BaseException:
            self._ended(peer, hash)
            raise
        self._ended(peer, hash)

    def _ended(self, peer: EthPeer, hash: Hash32) -> None:
        """End a fetch. Ask the next announcer if the block is still missing, and start the peer's next fetch."""
        pending = self._pending.get(hash)
        if pending is not None and peer in pending.asked:
            pending.asked.remove(peer)
            if not pending.asked:
                self._ask_next(hash)
        announcer = self._announcers.get(peer)
        if announcer is None:
            return
        announcer.fetches -= 1
        while announcer.due and announcer.fetches < MAX_FETCHES:
            following = announcer.due.popleft()
            waiting = self._pending.get(following)
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
