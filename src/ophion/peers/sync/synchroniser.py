"""`Synchroniser`: detects a better chain among the peers and downloads it.

The synchroniser wakes when a peer connects, disconnects or raises its head. The peer with the best chain is the target
of the next cycle. Small gaps are left to block gossip for a short time. After a failed cycle the target is paused for
two seconds or more. Until a cycle imports blocks again, claimed heights are ignored. The target is then the peer with
the fewest failures; a tie goes to the oldest connection. So a peer that claims a false height cannot block
synchronisation, even if it reconnects with new keys.

A peer may also answer correctly and as slowly as the time limits allow. If the import waits too long for the target,
other peers are tried as target, and the fastest peer stays the target.

`is_in_sync` says whether this node may validate transactions and produce blocks. The check ignores claimed heights: a
node is behind only if it has imported blocks from the target and lacks more than five further blocks. Otherwise any
peer could stop block production by claiming a million blocks.
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
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.peer_head import PeerHead
from ophion.peers.eth.protocol import EthProtocol
from ophion.peers.eth.requests import RequestFailed
from ophion.peers.sync.common_ancestor import common_ancestor
from ophion.peers.sync.download import Download, TargetTooSlow
from ophion.peers.sync.header_requests import HeadersNotLinked
from ophion.peers.sync.peer_speed import PATIENCE_S
from ophion.peers.sync.progress import ProgressLog, SyncProgress
from ophion.peers.sync.sync_metrics import SyncMetrics
from ophion.peers.token_bucket import TokenBucket
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address
from ophion.runtime.thread_pools import Lanes
from ophion.runtime.topic import Topic

log = logging.getLogger(__name__)

TOLERANCE: Final = 5
"""A node at most this many blocks behind counts as in sync."""
PAUSE_S: Final = 2.0
"""Seconds for which a peer is paused after a failed sync cycle. The pause doubles with each consecutive failure."""
LONGEST_PAUSE_S: Final = 60.0
ONE_PEER_WAIT_S: Final = 0.75
"""Seconds for which a small gap is left to gossip. Gossip fetches announced blocks after half a second."""
_MAX_STRIKES: Final = 2
"""Number of consecutive sync cycles with unlinked headers after which a peer is disconnected. A single reorganisation
can cause one such cycle.
"""
_MUCH_FASTER: Final = 2.0
"""A slow target is replaced by a peer that was faster by this factor."""
_MAX_TRIALS: Final = 25
_TRIALS_PER_S: Final = 0.1
"""Rate limit of the replacements of a slow target by peers of unknown speed. The burst allows one trial of each peer up
to the default peer limit.
"""


class _TargetHistory(Struct):
    """The history of a peer as sync target."""

    strikes: int = 0
    """Number of consecutive sync cycles with unlinked headers."""
    failures: int = 0
    """Number of consecutive sync cycles without an imported block."""
    not_before: float = 0.0
    """Event loop time before which the peer is not chosen again."""
    blocks_per_s: float | None = None
    """Blocks per second in the last sync cycle that was long enough to measure."""

    def failed(self, now: float) -> None:
        """Count a failed sync cycle and extend the pause of the peer."""
        self.failures += 1
        self.not_before = now + min(PAUSE_S * 2 ** (self.failures - 1), LONGEST_PAUSE_S)


class Synchroniser:
    """A service that keeps the chain in sync with the best peer."""

    name = "synchroniser"

    def __init__(self, chain: Chain, importer: Importer, eth: EthProtocol, lanes: Lanes) -> None:
        self.changed: Topic[bool] = Topic()
        """Published when `is_in_sync` changes."""
        self.figures = SyncMetrics()
        self._chain = chain
        self._importer = importer
        self._eth = eth
        self._lanes = lanes
        self._is_final = chain.engine.finality is Finality.IMMEDIATE
        self._starting = chain.head.number
        self._download: Download | None = None
        self._has_proof = False
        """Whether the current sync cycle has imported blocks, which proves that the target had blocks that this node
        lacked.
        """
        self._was_in_sync = True
        self._is_urgent = False
        self._ignores_claims = False
        """Whether the last cycle failed, so that claimed heights are ignored."""
        self._behind_since: float | None = None
        self._histories: dict[EthPeer, _TargetHistory] = {}
        self._trials = TokenBucket(_MAX_TRIALS, _TRIALS_PER_S)
        self._replacement: EthPeer | None = None
        """The peer that replaces a slow target in the next cycle."""
        self._woken = asyncio.Event()
        eth.is_accepting = self.is_in_sync
        eth.peers.changed.listen(self._on_peer)
        chain.events.listen(self._on_chain_event)

    # --- sync status ----------------------------------------------------------------------------

    def is_in_sync(self) -> bool:
        """Whether this node is at most five blocks behind. Heights that peers only claim do not count."""
        download = self._download
        return download is None or not self._has_proof or download.goal - self._chain.head.number <= TOLERANCE

    def status(self) -> SyncProgress | None:
        """Return the progress, or None while no peer is ahead of this node."""
        current = self._chain.head.number
        highest = max(current, self.best_height)
        return None if highest == current else SyncProgress(self._starting, current, highest)

    @property
    def best_height(self) -> int:
        """Return the highest height of the usable peers, or 0 without usable peers.

        Ignores peers whose last cycle failed.
        """
        return max((peer.height for peer in self._eth.peers if peer.is_usable and not self._failures(peer)), default=0)

    def _failures(self, peer: EthPeer) -> int:
        history = self._histories.get(peer)
        return 0 if history is None else history.failures

    def catch_up(self, address: Address | None, height: int) -> None:
        """Start a sync cycle now. As a consensus message has shown, the peer `address` has at least this height."""
        peer = None if address is None else self._eth.peers.by_address(address)
        if peer is not None and height > self._chain.head.number:
            self._is_urgent = True
            peer.raise_height(height)
            self._woken.set()

    # --- Service (called by the node) -----------------------------------------------------------

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
            self._histories.pop(peer, None)
        self._woken.set()

    def _on_chain_event(self, event: ChainEvent) -> None:
        self._publish_change()

    def _publish_change(self) -> None:
        is_in_sync = self.is_in_sync()
        if is_in_sync != self._was_in_sync:
            self._was_in_sync = is_in_sync
            if is_in_sync:
                self._eth.transactions.forget_known()
            self.changed.publish(is_in_sync)

    # --- target selection -----------------------------------------------------------------------

    def _choose(self) -> tuple[EthPeer | None, float | None]:
        """Return the target of the next sync cycle (or None) and the seconds to wait before the next choice (or
        None).
        """
        now = asyncio.get_running_loop().time()
        better = [peer for peer in self._eth.peers if peer.is_usable and self._is_better(peer)]
        replacement, self._replacement = self._replacement, None
        if replacement in better:
            return replacement, None
        if not better:
            self._behind_since = None
            self._is_urgent = False
            return None, None
        allowed = [peer for peer in better if self._not_before(peer) <= now]
        if not allowed:
            return None, min(self._not_before(peer) for peer in better) - now
        # prefer member peers, because unknown peers can claim any height
        allowed = [peer for peer in allowed if self._eth.is_member(peer)] or allowed
        if self._ignores_claims:
            # of several peers with the same number of failures, the oldest connection is chosen
            target = min(allowed, key=self._failures)
        else:
            target = max(allowed, key=lambda peer: (peer.head.total_difficulty or 0, peer.height, peer.peer.score))
        if self._is_urgent or target.height - self._chain.head.number > NEWEST:
            return target, None
        if self._behind_since is None:
            self._behind_since = now
        left_s = self._behind_since + ONE_PEER_WAIT_S - now
        return (None, left_s) if left_s > 0 else (target, None)

    def _is_better(self, peer: EthPeer) -> bool:
        """Whether a peer's chain is better than ours.

        On chains with final blocks, the greater height is better. On other chains, the greater total difficulty is
        better, and so is a height far above ours.
        """
        tip = self._chain.tip
        if self._is_final or peer.head.total_difficulty is None:
            return peer.height > tip.header.number
        if peer.head.total_difficulty > tip.total_difficulty:
            return True
        # if the height has grown since the peer announced its total difficulty, it is outdated, so compare heights
        return peer.height > max(peer.head.height or 0, tip.header.number + NEWEST)

    def _not_before(self, peer: EthPeer) -> float:
        history = self._histories.get(peer)
        return 0.0 if history is None else history.not_before

    def _find_replacement(self, target: EthPeer, blocks_per_s: float) -> EthPeer | None:
        """Return a peer to try instead of a slow target: a peer that was much faster, or else the peer of unknown speed
        with the quickest responses. An unknown peer does not replace a network member.
        """
        now = asyncio.get_running_loop().time()
        is_member = self._eth.is_member(target)
        fastest, fastest_per_s = None, _MUCH_FASTER * blocks_per_s
        untried: list[EthPeer] = []
        for peer in self._eth.peers:
            if peer is target or not (peer.is_usable and self._is_better(peer)):
                continue
            if is_member and not self._eth.is_member(peer):
                continue
            history = self._histories.get(peer)
            if history is not None and history.blocks_per_s is not None:
                if history.blocks_per_s > fastest_per_s:
                    fastest, fastest_per_s = peer, history.blocks_per_s
            elif self._not_before(peer) <= now:
                untried.append(peer)
        if fastest is None and untried and self._trials.take(1, now):
            return min(untried, key=lambda peer: peer.response_s)
        return fastest

    # --- one sync cycle -------------------------------------------------------------------------

    async def _cycle(self, target: EthPeer) -> None:
        loop = asyncio.get_running_loop()
        history = self._histories.setdefault(target, _TargetHistory())
        self._is_urgent = False
        self._behind_since = None
        first, began = self._chain.head.number, loop.time()
        line = ProgressLog(first, began)
        is_long = target.height - first > NEWEST
        if is_long:
            log.info("synchronisation started peer=%r from=%d to=%d", target, first, target.height)
        is_slow = False
        try:
            ancestor = await self._ancestor(target)
            self._download = self._begin(target, ancestor, line)
            await self._download.run()
            self._learn_head(target, self._download.last)
        except HeadersNotLinked as error:
            self.figures.restarts["does_not_link"] += 1
            history.strikes += 1
            if history.strikes >= _MAX_STRIKES and not self._has_proof:
                target.peer.disconnect(DisconnectReason.BREACH, str(error))
        except PeerMisbehaved as error:
            self.figures.restarts["misbehaved"] += 1
            log.warning("synchronisation stopped by invalid data peer=%r error=%s", target, error)
            target.peer.disconnect(error.reason, str(error))
        except TargetTooSlow as error:
            is_slow = True
            self.figures.restarts["too_slow"] += 1
            log.info(
                "synchronisation continues with another peer peer=%r blocks_per_s=%.1f", target, error.blocks_per_s
            )
        except RequestFailed as error:
            self.figures.restarts["not_answered"] += 1
            log.info("synchronisation interrupted peer=%r error=%s", target, error)
        finally:
            elapsed_s = loop.time() - began
            if is_slow or elapsed_s >= PATIENCE_S:
                history.blocks_per_s = (self._chain.head.number - first) / max(elapsed_s, 1e-3)
            self._end(target, history, line if is_long else None, is_slow)

    async def _ancestor(self, target: EthPeer) -> HashedHeader:
        """Find the common ancestor. Raises `TargetTooSlow` when this takes too long and another peer may be faster."""
        with self.figures.timed("ancestor"):
            finding = asyncio.ensure_future(common_ancestor(target, self._chain))
            try:
                while not (await asyncio.wait((finding,), timeout=PATIENCE_S))[0]:
                    if self._is_replaceable(target, 0.0):
                        raise TargetTooSlow(0.0)
                return finding.result()
            finally:
                finding.cancel()

    def _is_replaceable(self, target: EthPeer, blocks_per_s: float) -> bool:
        self._replacement = self._find_replacement(target, blocks_per_s)
        return self._replacement is not None

    def _end(self, target: EthPeer, history: _TargetHistory, line: ProgressLog | None, is_slow: bool) -> None:
        """End a sync cycle. A success resets the failure count of the target; a failure increases it."""
        now = asyncio.get_running_loop().time()
        has_proof, self._has_proof = self._has_proof, False
        self._download = None
        if is_slow:
            self._ignores_claims = True
            history.failed(now)
            if has_proof:
                self._eth.blocks.announce_head()
        elif has_proof:
            self._ignores_claims = False
            history.strikes = history.failures = 0
            self._eth.blocks.announce_head()
            if line is not None:
                line.finished(self._chain.head.number, now)
        elif self._is_better(target):
            self._ignores_claims = True
            history.failed(now)
        self._publish_change()

    def _learn_head(self, target: EthPeer, last: HashedHeader) -> None:
        """Set the target's head to the last downloaded block."""
        weight = self._chain.total_difficulty(last.hash) if target.version.has_total_difficulty else None
        target.raise_head(PeerHead(last.hash, weight, last.number))
        target.known_blocks.add(last.hash)

    def _begin(self, target: EthPeer, ancestor: HashedHeader, line: ProgressLog) -> Download:
        async def import_batch(blocks: list[ChainBlock]) -> ImportedBatch:
            self._eth.blocks.note_synchronised(blocks)
            batch = await self._importer.import_batch(blocks)
            if batch.count:
                self._has_proof = True
                transactions = sum(block.body.transaction_count for block in blocks)
                now = asyncio.get_running_loop().time()
                line.imported(self._chain.head.number, self.best_height, transactions, len(self._eth.peers), now)
                self._publish_change()
            return batch

        async def look_ahead(headers: list[HashedHeader]) -> None:
            await self._lanes.peers.run(lambda: self._chain.engine.look_ahead(headers))

        def is_replaceable(blocks_per_s: float) -> bool:
            return self._is_replaceable(target, blocks_per_s)

        return Download(
            target, ancestor, self._helpers, import_batch, look_ahead, self.figures, is_replaceable=is_replaceable
        )

    def _helpers(self) -> list[EthPeer]:
        return [peer for peer in self._eth.peers if peer.is_usable]
