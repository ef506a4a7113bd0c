"""`SnapSynchroniser`: chooses the pivot block, then fetches the headers up to the pivot and the state of the pivot.

    best peer ─> pivot, some blocks below its head ─> headers ─> state ─┬─> last bodies ─> done
        ^                                                               │
        └──────────────── no peer has the state any more <──────────────┘

Headers are accepted because they have valid seals, whichever peer sends them. A peer that sends an invalid chain is
disconnected, and another peer becomes the target. Bodies and receipts of the other blocks follow while the node runs
(`peers/sync/block_history.py`).

Blocks of Clique are not final. On a Clique network, the pivot is a block with 64 sealed headers above it. This module
requests and verifies these headers, because a peer could claim any height.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ophion.chain.chain import FIRST_STATE_KEY, Chain
from ophion.consensus.engine import Finality
from ophion.errors import InvalidBlock, UnknownParent
from ophion.native.exceptions import translated
from ophion.native.store import BlockHistory, StateDownload
from ophion.node.snap_sync.header_download import download_headers
from ophion.node.snap_sync.headers import ReceivedHeaders
from ophion.node.snap_sync.peer_choice import PeerChoice, StateGone
from ophion.node.snap_sync.state import StateSync
from ophion.node.snap_sync.trusted_hashes import TrustedHashes
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.messages import GetHeaders
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.requests import RequestFailed
from ophion.peers.snap.peer import SnapPeer, SnapPeers
from ophion.peers.sync.block_history import HistoryDownload
from ophion.peers.sync.common_ancestor import common_ancestor
from ophion.peers.sync.download import RECENT_BLOCKS
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32
from ophion.runtime.clock import Clock
from ophion.runtime.thread_pools import Lanes

log = logging.getLogger(__name__)

FINAL_DISTANCE: Final = 8
"""Number of blocks from the pivot to the head of the target (the peer with the longest chain), if blocks are final."""
DISTANCE: Final = 64
"""Number of blocks from the pivot to the head of the target, if the chain may be reorganised."""
MIN_BLOCKS: Final = 64
"""Minimum number of blocks for snap synchronisation. The blocks of a shorter chain are executed."""
PEERS_TIMEOUT_S: Final = 30.0
"""Seconds without any peer after which the node starts as a full node, unless it has fetched headers already."""
LONG_CHAIN_S: Final = 5.0
"""Seconds to wait for a peer with a long chain, after the first peer has connected. After this time, the node starts as
a full node, unless it has fetched headers already.
"""
RETRY_S: Final = 2.0
_LOOK_S: Final = 0.1
_REPORT_S: Final = 5.0


class SnapSynchroniser:
    """Fetches headers, a state and the last bodies into a database, until the database has the state of the pivot. One
    object per synchronisation.
    """

    def __init__(
        self,
        chain: Chain,
        eth_peers: Callable[[], list[EthPeer]],
        snap_peers: SnapPeers,
        lanes: Lanes,
        clock: Clock,
        trusted_hash: Hash32 | None,
    ) -> None:
        """Create the synchroniser for `chain`, the chain in the new database. `eth_peers` returns the connected peers
        whose best block is known.

        `trusted_hash` is the hash of the pivot, from a source that the operator trusts.
        """
        self._chain = chain
        self._eth_peers = eth_peers
        self._snap_peers = snap_peers
        self._lanes = lanes
        self._clock = clock
        self._trusted = None if trusted_hash is None else TrustedHashes(trusted_hash)
        self._headers = ReceivedHeaders(chain, None if self._trusted is None else self._trusted.hash_of)
        self._choice = PeerChoice(self._usable)
        self._state = StateSync(chain.store, self._choice, lanes)
        self._history = HistoryDownload(chain.store, chain.engine, eth_peers, lanes)
        self._failures: dict[bytes, int] = {}
        """Number of failed attempts with a peer as the target, by node id."""
        self._reported_at = 0.0

    async def run(self) -> bool:
        """Synchronise up to a pivot. Returns False if no peer has a long chain; the caller should then execute all
        blocks.

        Raises `SnapSyncError` for a problem that a retry cannot solve. A later call continues with the fetched data.
        """
        began = asyncio.get_running_loop().time()
        while True:
            target = await self._target()
            if target is None:
                return False
            try:
                pivot = await self._fetch_headers(target, await self._pivot(target))
                await self._fetch_state(pivot)
                await self._finish(pivot)
            except PeerMisbehaved as error:
                log.warning("peer disconnected: invalid chain peer=%r error=%s", target, error)
                target.peer.disconnect(error.reason, str(error))
                self._failed(target)
            except RequestFailed as error:
                log.info("snap synchronisation interrupted peer=%r error=%s", target, error)
                self._failed(target)
                await asyncio.sleep(RETRY_S)
            except StateGone as error:
                log.info("choosing another pivot head=%d reason=%s", self._chain.head.number, error)
                await asyncio.sleep(RETRY_S)
                self._choice.forget()
            else:
                head, seconds = self._chain.head, asyncio.get_running_loop().time() - began
                log.info("state complete number=%d hash=0x%s elapsed_s=%.1f", head.number, head.hash.hex(), seconds)
                return True

    # --- target and pivot -----------------------------------------------------------------------

    async def _target(self) -> EthPeer | None:
        """Return the target: the peer with the fewest failures and, among these, the highest head. Waits for such a
        peer. Returns None if no peer has a long chain, unless headers are fetched already or a hash is trusted.
        """
        loop = asyncio.get_running_loop()
        began = reported = loop.time()
        first_peer_at: float | None = None
        while True:
            head, peers = self._chain.head.number, self._eth_peers()
            able = [peer for peer in peers if peer.height >= max(head, self._min_height)]
            if able:
                return min(able, key=lambda peer: (self._failures.get(peer.peer.id, 0), -peer.height))
            now = loop.time()
            if not peers:
                is_over, first_peer_at = now - began > PEERS_TIMEOUT_S, None
            else:
                first_peer_at = now if first_peer_at is None else first_peer_at
                is_over = now - first_peer_at > LONG_CHAIN_S
            if is_over and head == 0 and self._trusted is None:
                height = max((peer.height for peer in peers), default=0)
                log.warning(
                    "snap synchronisation not used: no peer has a long chain. Every block is executed. To use it later,"
                    " stop the node and remove its database. peers=%d height=%d min_height=%d",
                    len(peers),
                    height,
                    self._min_height,
                )
                return None
            if now - reported > _REPORT_S:
                reported = now
                log.info("snap synchronisation waits for peers header=%d peers=%d", head, len(peers))
            await asyncio.sleep(_LOOK_S)

    @property
    def _min_height(self) -> int:
        """Minimum height of a peer whose chain is long enough for snap synchronisation."""
        return 1 if self._trusted is not None else MIN_BLOCKS + self._distance

    @property
    def _distance(self) -> int:
        return FINAL_DISTANCE if self._is_final else DISTANCE

    @property
    def _is_final(self) -> bool:
        """Whether a reorganisation can no longer replace the fetched headers."""
        return self._trusted is not None or self._chain.engine.finality is Finality.IMMEDIATE

    async def _pivot(self, target: EthPeer) -> int:
        """Return the number of the last header to fetch."""
        if self._trusted is not None:
            return await self._trusted.fetch(target, self._chain.head)
        # the pivot must not be below the last fetched header, because the headers up to that one are written already
        return max(self._chain.head.number, target.height - self._distance)

    def _failed(self, target: EthPeer) -> None:
        self._failures[target.peer.id] = self._failures.get(target.peer.id, 0) + 1

    def _usable(self) -> list[SnapPeer]:
        """Return the open connections to peers that speak both eth and snap and whose best block is known."""
        ready = {peer.peer.id for peer in self._eth_peers()}
        return [peer for peer in self._snap_peers if peer.peer.id in ready and peer.peer.is_open]

    # --- headers --------------------------------------------------------------------------------

    async def _fetch_headers(self, target: EthPeer, goal: int) -> HashedHeader:
        """Fetch headers up to the number `goal`. Returns the header of the pivot, whose state is fetched next."""
        chain = self._chain
        shared = chain.head
        if shared.number < goal or not self._is_final:
            shared = await common_ancestor(target, chain)
        if shared.number < goal:
            log.info("downloading headers peer=%r from=%d to=%d", target, shared.number, goal)
            await download_headers(target, shared.number + 1, goal, self._add)
            shared = chain.head
        return shared if self._is_final else await self._buried(target, shared)

    async def _buried(self, target: EthPeer, shared: HashedHeader) -> HashedHeader:
        """Return the highest canonical block that has 64 valid sealed headers above it in the target's chain. `shared`
        is the last block that the target and this node have in common.
        """
        above = await target.headers(GetHeaders(shared.number + 1, self._distance))
        now = int(self._clock.now())
        try:
            await self._lanes.write.run(lambda: self._headers.verify(above, now))
        except (InvalidBlock, UnknownParent) as error:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"headers above block {shared.number}: {error}") from error
        found = self._chain.canonical(max(0, shared.number - self._distance + len(above)))
        if found is None or found.number == 0:
            raise RequestFailed("pivot", f"the chain of the peer ends {len(above)} blocks above block {shared.number}")
        return found

    async def _add(self, headers: list[HashedHeader]) -> None:
        """Verify and write the headers of one response."""
        now = int(self._clock.now())
        await self._lanes.peers.run(lambda: self._headers.look_ahead(headers))
        try:
            await self._lanes.write.run(lambda: self._headers.add(headers, now))
        except (InvalidBlock, UnknownParent) as error:
            reason = f"headers from block {headers[0].number} on: {error}"
            raise PeerMisbehaved(DisconnectReason.BREACH, reason) from error
        self._report()

    def _report(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._reported_at >= _REPORT_S:
            self._reported_at = now
            highest = max((peer.height for peer in self._eth_peers()), default=0)
            log.info("downloading headers number=%d highest=%d", self._chain.head.number, highest)

    # --- state ----------------------------------------------------------------------------------

    async def _fetch_state(self, pivot: HashedHeader) -> None:
        log.info("downloading state number=%d root=0x%s", pivot.number, pivot.header.state_root.hex())
        await self._state.run(pivot.header.state_root)

    # --- the last bodies ------------------------------------------------------------------------

    async def _finish(self, pivot: HashedHeader) -> None:
        """Fetch bodies and receipts of the last blocks, for peers and for the fee oracle. Then record the downloaded
        state as the state of the pivot, and make the pivot the head of the chain.
        """
        log.info("downloading bodies and receipts of the last blocks number=%d", pivot.number)
        with translated():
            history = BlockHistory(self._chain.store)
            await self._lanes.write.run(lambda: history.begin(pivot.number))
        while await self._history.step(max(1, pivot.number + 1 - RECENT_BLOCKS)):
            pass
        named = [(FIRST_STATE_KEY, pivot.number.to_bytes(8, "big"))]
        root, hash, number = pivot.header.state_root, pivot.hash, pivot.number
        with translated():
            download = StateDownload(self._chain.store)
            await self._lanes.write.run(lambda: download.finish(root, hash, number, named))
        self._headers.move_to(pivot)
