"""`Synchroniser`: finds out whether there is a better chain than ours, and fetches it.

It wakes when a peer comes, leaves or has more blocks than was known. The best of those whose chain is better is the
target of the next cycle; small gaps are left to the gossip of blocks for a moment, which mostly closes them first. A
cycle that fails pauses for two seconds, and so does the peer that made it fail. What peers claim is not believed then:
until a cycle brings blocks, whoever has failed least is asked, and of these who came first. A stranger that promises
everything and delivers nothing comes later than all who are here, under whatever name it comes again.

`is_in_sync` says whether this node may judge transactions and make blocks. What peers claim does not count for it:
a node is behind once blocks have come that really continue its chain and more than five are still missing. Otherwise
anybody who connects could stop a network by promising a million blocks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ophion.chain.chain import Chain
from ophion.chain.events import ChainBlock, ChainEvent
from ophion.chain.importer import ImportedBatch, Importer
from ophion.consensus.engine import Finality
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.block_gossip import NEWEST
from ophion.peers.eth.head import PeerHead
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.protocol import EthProtocol
from ophion.peers.eth.requests import RequestFailed
from ophion.peers.sync.ancestor import common_ancestor
from ophion.peers.sync.download import Download
from ophion.peers.sync.headers import DoesNotLink
from ophion.peers.sync.progress import ProgressLine, SyncProgress
from ophion.peers.sync.sync_metrics import SyncFigures
from ophion.primitives.block import HashedHeader
from ophion.primitives.types import Address
from ophion.runtime.lanes import Lanes
from ophion.runtime.topic import Topic

log = logging.getLogger(__name__)

TOLERANCE: Final = 5
"""A node so many blocks behind is in sync."""
PAUSE_S: Final = 2.0
"""After a failure, and twice as long after each further one in a row."""
LONGEST_PAUSE_S: Final = 60.0
PATIENCE_S: Final = 0.75
"""How long a small gap is left to gossip, which fetches an announced block after half a second."""
_MAX_STRIKES: Final = 2
"""Broken chains of headers in a row that are called a lie: one may be a reorganisation between two answers."""


class _Conduct(Struct):
    """What a peer did in earlier cycles."""

    strikes: int = 0
    """Broken chains of headers in a row."""
    failures: int = 0
    """Cycles in a row that brought nothing."""
    not_before: float = 0.0
    """It is not the target again before this."""

    def failed(self, now: float) -> None:
        """The longer it goes on, the later it is tried again."""
        self.failures += 1
        self.not_before = now + min(PAUSE_S * 2 ** (self.failures - 1), LONGEST_PAUSE_S)


class Synchroniser:
    """Keeps the chain up with the best of the peers; a service."""

    name = "synchroniser"

    def __init__(self, chain: Chain, importer: Importer, eth: EthProtocol, lanes: Lanes) -> None:
        self.changed: Topic[bool] = Topic()
        """Told whenever `is_in_sync` changes."""
        self.figures = SyncFigures()
        self._chain = chain
        self._importer = importer
        self._eth = eth
        self._lanes = lanes
        self._is_final = chain.engine.finality is Finality.IMMEDIATE
        self._starting = chain.head.number
        self._download: Download | None = None
        self._has_proof = False
        """Whether the present cycle has brought blocks that continue the chain."""
        self._was_in_sync = True
        self._is_urgent = False
        self._is_wary = False
        """Whether the last cycle brought nothing that was promised."""
        self._behind_since: float | None = None
        self._conduct: dict[EthPeer, _Conduct] = {}
        self._woken = asyncio.Event()
        eth.is_accepting = self.is_in_sync
        eth.peers.changed.listen(self._on_peer)
        chain.events.listen(self._on_chain_event)

    # --- what others ask ------------------------------------------------------------------------

    def is_in_sync(self) -> bool:
        """At most five blocks behind, as far as it is proved."""
        download = self._download
        return download is None or not self._has_proof or download.goal - self._chain.head.number <= TOLERANCE

    def status(self) -> SyncProgress | None:
        """How far it has come; None while no peer has more than this node."""
        current = self._chain.head.number
        highest = max(current, self.best_height)
        return None if highest == current else SyncProgress(self._starting, current, highest)

    @property
    def best_height(self) -> int:
        """The highest block of those peers whose best block has been seen; 0 without any.

        Who has promised blocks and not delivered them when it was asked is not believed any more until it does.
        """
        return max((peer.height for peer in self._eth.peers if peer.is_usable and not self._failures(peer)), default=0)

    def _failures(self, peer: EthPeer) -> int:
        conduct = self._conduct.get(peer)
        return 0 if conduct is None else conduct.failures

    def catch_up(self, address: Address | None, height: int) -> None:
        """A peer speaks of a later block: its chain has at least this height."""
        peer = None if address is None else self._eth.peers.by_address(address)
        if peer is not None and height > self._chain.head.number:
            self._is_urgent = True
            peer.raise_height(height)
            self._woken.set()

    # --- Service --------------------------------------------------------------------------------

    async def run(self, ready: Callable[[], None]) -> None:
        """Synchronise whenever a peer has a better chain."""
        ready()
        while True:
            self._woken.clear()
            target, wait_s = self._choose()
            if target is not None:
                await self._cycle(target)
                continue
            try:
                async with asyncio.timeout(wait_s):
                    await self._woken.wait()
            except TimeoutError:
                pass

    def _on_peer(self, peer: EthPeer) -> None:
        if not peer.peer.is_open:
            self._conduct.pop(peer, None)
        self._woken.set()

    def _on_chain_event(self, event: ChainEvent) -> None:
        self._tell_change()

    def _tell_change(self) -> None:
        is_in_sync = self.is_in_sync()
        if is_in_sync != self._was_in_sync:
            self._was_in_sync = is_in_sync
            if is_in_sync:
                self._eth.transactions.forget_known()
            self.changed.publish(is_in_sync)

    # --- choosing -------------------------------------------------------------------------------

    def _choose(self) -> tuple[EthPeer | None, float | None]:
        """The target of the next cycle; without one, how long to wait before looking again."""
        now = asyncio.get_running_loop().time()
        better = [peer for peer in self._eth.peers if peer.is_usable and self._is_better(peer)]
        if not better:
            self._behind_since = None
            self._is_urgent = False
            return None, None
        allowed = [peer for peer in better if self._not_before(peer) <= now]
        if not allowed:
            return None, min(self._not_before(peer) for peer in better) - now
        # unknown peers can claim any height: members come first
        allowed = [peer for peer in allowed if self._eth.is_member(peer)] or allowed
        if self._is_wary:
            target = min(allowed, key=self._failures)  # peers are in the order in which they came
        else:
            target = max(allowed, key=lambda peer: (peer.head.total_difficulty or 0, peer.height, peer.peer.score))
        if self._is_urgent or target.height - self._chain.head.number > NEWEST:
            return target, None
        if self._behind_since is None:
            self._behind_since = now
        patience_s = self._behind_since + PATIENCE_S - now
        return (None, patience_s) if patience_s > 0 else (target, None)

    def _is_better(self, peer: EthPeer) -> bool:
        """By weight where that is known; a height alone counts where blocks are final, or when it is far above."""
        tip = self._chain.tip
        if self._is_final or peer.head.total_difficulty is None:
            return peer.height > tip.header.number
        if peer.head.total_difficulty > tip.total_difficulty:
            return True
        # its weight was told long ago: it has gone on since
        return peer.height > max(peer.head.height or 0, tip.header.number + NEWEST)

    def _not_before(self, peer: EthPeer) -> float:
        conduct = self._conduct.get(peer)
        return 0.0 if conduct is None else conduct.not_before

    # --- one cycle ------------------------------------------------------------------------------

    async def _cycle(self, target: EthPeer) -> None:
        loop = asyncio.get_running_loop()
        conduct = self._conduct.setdefault(target, _Conduct())
        self._is_urgent = False
        self._behind_since = None
        first = self._chain.head.number
        line = ProgressLine(first, loop.time())
        is_long = target.height - first > NEWEST
        if is_long:
            log.info("Synchronising with %r: block %s to %s", target, f"{first:,}", f"{target.height:,}")
        try:
            with self.figures.timed("ancestor"):
                ancestor = await common_ancestor(target, self._chain)
            self._download = self._begin(target, ancestor, line)
            await self._download.run()
            self._learn_head(target, self._download.last)
        except DoesNotLink as error:
            self.figures.restarts["does_not_link"] += 1
            conduct.strikes += 1
            if conduct.strikes >= _MAX_STRIKES and not self._has_proof:
                target.peer.disconnect(DisconnectReason.BREACH, str(error))
        except PeerMisbehaved as error:
            self.figures.restarts["misbehaved"] += 1
            log.warning("Synchronisation with %r ended: %s", target, error)
            target.peer.disconnect(error.reason, str(error))
        except RequestFailed as error:
            self.figures.restarts["not_answered"] += 1
            log.info("Synchronisation with %r broke off: %s", target, error)
        finally:
            self._end(target, conduct, line if is_long else None)

    def _end(self, target: EthPeer, conduct: _Conduct, line: ProgressLine | None) -> None:
        """A cycle is over, one way or another."""
        now = asyncio.get_running_loop().time()
        has_proof, self._has_proof = self._has_proof, False
        self._download = None
        if has_proof:
            self._is_wary = False
            conduct.strikes = conduct.failures = 0
            self._eth.blocks.announce_head()
            if line is not None:
                line.finished(self._chain.head.number, now)
        elif self._is_better(target):
            self._is_wary = True
            conduct.failed(now)
        self._tell_change()

    def _learn_head(self, target: EthPeer, last: HashedHeader) -> None:
        """How heavy the target's chain is, now that it is here."""
        weight = self._chain.total_difficulty(last.hash) if target.version.has_total_difficulty else None
        target.raise_head(PeerHead(last.hash, weight, last.number))
        target.known_blocks.add(last.hash)

    def _begin(self, target: EthPeer, ancestor: HashedHeader, line: ProgressLine) -> Download:
        async def import_batch(blocks: list[ChainBlock]) -> ImportedBatch:
            self._eth.blocks.came_by_sync(blocks)
            batch = await self._importer.import_batch(blocks)
            if batch.count:
                self._has_proof = True
                transactions = sum(block.body.transaction_count for block in blocks)
                now = asyncio.get_running_loop().time()
                line.imported(self._chain.head.number, self.best_height, transactions, len(self._eth.peers), now)
                self._tell_change()
            return batch

        async def look_ahead(headers: list[HashedHeader]) -> None:
            await self._lanes.peers.run(lambda: self._chain.engine.look_ahead(headers))

        return Download(target, ancestor, self._helpers, import_batch, look_ahead, self.figures)

    def _helpers(self) -> list[EthPeer]:
        return [peer for peer in self._eth.peers if peer.is_usable]
