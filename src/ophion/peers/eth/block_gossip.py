"""Block gossip: announces own blocks; verifies, relays and imports the blocks of peers (networking.md 3.9).

    NewBlock ──────────────┐
    NewBlockHashes ─ fetch ┴─> near the head? ─> body matches? ─> parent known? ─> header valid? ─> relay in full
                                                                      │ no            │ too early       │
                                                                      hold, fetch     hold           import,
                                                                      the parent                     announce hash

Nodes verify a header before they relay its block, so a peer that sends an invalid header is disconnected. Blocks far
ahead are left to synchronisation. Old and known blocks are ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from math import isqrt
from random import Random
from typing import Final

from ophion.chain.block import decode_block, encode_block, peek_header
from ophion.chain.chain import Chain
from ophion.chain.events import ChainBlock, ChainEvent, Reorged
from ophion.chain.importer import Importer, ImportOutcome
from ophion.chain.validation import check_belongs
from ophion.consensus.engine import Finality
from ophion.errors import InvalidBlock, OphionError, UnknownParent
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.block_fetcher import BlockFetcher
from ophion.peers.eth.detached_tasks import DetachedTasks
from ophion.peers.eth.held_blocks import HeldBlocks
from ophion.peers.eth.known_hashes import RecentHashes
from ophion.peers.eth.messages import (
    MAX_EXTRA_DATA,
    MAX_HEADER_BYTES,
    Code,
    EncodedBlock,
    decode_new_block,
    decode_new_hashes,
    encode_new_block,
    encode_new_hashes,
)
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.peer_head import PeerHead
from ophion.peers.eth.peers import EthPeers
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address, Hash32
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

OLDEST: Final = 10
"""Maximum distance of an accepted block below the head, in blocks."""
NEWEST: Final = 30
"""Maximum distance of an accepted block above the head, in blocks."""
_MAX_FULL_RECIPIENTS: Final = 25
"""Up to this number of peers, all peers get a block in full. With more peers, only a random sample gets the block in
full.
"""
_MAX_LEAD_S: Final = 30.0
"""Seconds that a timestamp may be in the future. Blocks further in the future are dropped."""
_DIFFICULTY_BITS: Final = 80
_FOREIGN: Final = 8192


class BlockGossip:
    """Announces own blocks to peers, and imports the blocks that peers announce."""

    def __init__(
        self,
        chain: Chain,
        importer: Importer,
        peers: EthPeers,
        tasks: DetachedTasks[EthPeer],
        lane: FairWorkerQueue[Peer],
        clock: Clock,
        random: Random,
        is_member: Callable[[EthPeer], bool],
    ) -> None:
        """Create the block gossip. `is_member` returns whether a peer is a validator, a static node or a permitted
        node. Members do not share the quota of unknown peers.
        """
        self.sent = 0
        """Number of blocks sent in full, for metrics."""
        self.dropped = 0
        """Number of blocks sent in full that were dropped, because the sender had used up its quota."""
        self._chain = chain
        self._importer = importer
        self._peers = peers
        self._tasks = tasks
        self._lane = lane
        self._clock = clock
        self._random = random
        self._is_final = chain.engine.finality is Finality.IMMEDIATE
        # a network with a merge announces no blocks, because merged nodes disconnect peers that announce blocks
        self._is_open = chain.spec.terminal_total_difficulty is None
        self._held = HeldBlocks(is_member)
        self._orphans: dict[Hash32, list[ChainBlock]] = {}
        """Blocks that wait for a missing parent, by the hash of the parent."""
        self._foreign = RecentHashes(_FOREIGN)
        """Hashes of blocks from peers. This node does not announce such blocks as own blocks."""
        self.refused: Callable[[Sequence[Header]], None] = lambda headers: None
        """Called for announced headers that do not follow the rules of this node."""
        self._fetcher = BlockFetcher(self._fetched, self._is_settled, self._held.__contains__, is_member)

    # --- announcements of peers -----------------------------------------------------------------

    def received(self, peer: EthPeer, payload: bytes) -> None:
        """Handle a NewBlock message, which has a block in full."""
        if not self._is_open:
            return
        encoded, total_difficulty = decode_new_block(payload)
        header = self._checked_header(encoded, total_difficulty)
        block = header.header
        peer.known_blocks.add(header.hash)
        weight = total_difficulty if peer.version.has_total_difficulty else None
        if block.number > 0:
            # a peer that sends a block has imported the parent, but possibly not yet the block itself
            before = None if weight is None else weight - block.difficulty
            peer.raise_head(PeerHead(block.parent_hash, before, block.number - 1))
        if not self._is_near(block.number) or self._is_settled(header.hash):
            return
        if header.hash in self._held:
            if not self._takes_over(peer, encoded, header):
                # another copy of the block is being verified; if the body of that copy is wrong, the fetcher asks this
                # peer
                self._fetcher.want(header.hash, block.number, peer)
            return
        if self._held.add(peer, header.hash, encoded.size):
            if self._tasks.spawn(self._take_full(peer, encoded, header), peer):
                return
            self._held.remove(header.hash, peer)
        # the peer does not send a dropped block again, so synchronisation must fetch it
        self.dropped += 1
        peer.raise_head(PeerHead(header.hash, weight, block.number))

    def _takes_over(self, peer: EthPeer, encoded: EncodedBlock, header: HashedHeader) -> bool:
        """Process the block of a network member although a copy from an unknown peer is already queued, because jobs of
        unknown peers wait longer. Returns False if the parent is missing or a quota of the member is used up.
        """
        if self._chain.header(header.parent_hash) is None or not self._held.take_over(peer, header.hash, encoded.size):
            return False
        if self._tasks.spawn(self._take_full(peer, encoded, header), peer):
            return True
        self._held.remove(header.hash, peer)
        return False

    def announced(self, peer: EthPeer, payload: bytes) -> None:
        """Handle a NewBlockHashes message: fetch the announced blocks that this node lacks."""
        if not self._is_open:
            return
        for hash, number in decode_new_hashes(payload):
            peer.known_blocks.add(hash)
            peer.raise_height(number)
            if self._is_near(number) and hash not in self._held and not self._is_settled(hash):
                self._fetcher.want(hash, number, peer)

    def _checked_header(self, encoded: EncodedBlock, total_difficulty: int) -> HashedHeader:
        if encoded.header_bytes > MAX_HEADER_BYTES:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"a block header of more than {MAX_HEADER_BYTES} bytes")
        try:
            header = peek_header(encoded.message, self._chain.engine, encoded.start, encoded.end)
        except InvalidBlock as error:
            start = rlp.head(encoded.message, encoded.start)[1]
            self.refused([Header.decode(encoded.message[start : rlp.item_end(encoded.message, start)])])
            raise PeerMisbehaved(DisconnectReason.BREACH, str(error)) from error
        block = header.header
        if block.difficulty.bit_length() > _DIFFICULTY_BITS or total_difficulty < block.difficulty:
            raise PeerMisbehaved(DisconnectReason.BREACH, "a block of impossible difficulty")
        if len(block.extra_data) > MAX_EXTRA_DATA:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"extra data of {len(block.extra_data)} bytes")
        return header

    def _is_near(self, number: int) -> bool:
        head = self._chain.head.number
        return (head if self._is_final else head - OLDEST) < number <= head + NEWEST

    def _is_settled(self, hash: Hash32) -> bool:
        """Whether a block is in the chain or known to be invalid."""
        return self._chain.header(hash) is not None or self._importer.bad_blocks.get(hash) is not None

    def joined(self, peer: EthPeer) -> None:
        """Announce the head to a new peer if the head has changed since this node sent its Status.

        Without this announcement, two Clique signers that seal the same height while they connect would wait for each
        other forever.
        """
        head = self._chain.head
        if self._is_open and head.hash not in peer.known_blocks:
            self._send_hash(peer, head, encode_new_hashes([(head.hash, head.number)]))

    def left(self, peer: EthPeer) -> None:
        """Drop a disconnected peer's blocks that wait for a parent. Blocks whose import has started are not dropped."""
        self._fetcher.left(peer)
        for parent, waiting in tuple(self._orphans.items()):
            for block in tuple(waiting):
                if self._held.sender(block.header.hash) is peer:
                    waiting.remove(block)
                    self._held.remove(block.header.hash)
            if not waiting:
                del self._orphans[parent]
        self._held.left(peer)

    # --- verifying and importing blocks ---------------------------------------------------------

    async def _take_full(self, peer: EthPeer, encoded: EncodedBlock, header: HashedHeader) -> None:
        self._fetcher.arrived(header.hash)
        parent = self._chain.header(header.parent_hash)
        # verify the seal before the body, because an unknown peer can invent a body but not a seal
        if parent is not None and not await self._is_good(peer, header, parent):
            self._held.remove(header.hash, peer)
            return
        try:
            block = await self._lane.run(peer.peer, lambda: self._decoded(encoded))
        except OphionError as error:
            # the body is wrong, and the header passed all checks so far: another peer may send the right body
            log.warning("announced block ignored peer=%r block=%s error=%s", peer, header, error)
            self._held.remove(header.hash, peer)
            return
        await self._bring_in(peer, block, is_verified=parent is not None)

    def _decoded(self, encoded: EncodedBlock) -> ChainBlock:
        block = decode_block(encoded.message, self._chain.engine, encoded.start, encoded.end)
        check_belongs(block.header.header, block.body)
        return block

    def _fetched(self, peer: EthPeer, block: ChainBlock) -> None:
        hash = block.header.hash
        if hash in self._held or self._is_settled(hash):
            return
        if self._held.add(peer, hash, len(encode_block(block))) and not self._tasks.spawn(
            self._bring_in(peer, block), peer
        ):
            self._held.remove(hash, peer)

    async def _bring_in(self, peer: EthPeer, block: ChainBlock, is_verified: bool = False) -> None:
        header = block.header
        parent = self._chain.header(header.parent_hash)
        if parent is None and not peer.peer.is_open:
            # the peer has disconnected and `left` has already run, so remove the block here
            self._held.remove(header.hash, peer)
            return
        if parent is None:
            self._orphans.setdefault(header.parent_hash, []).append(block)
            if header.parent_hash not in self._held and self._is_near(header.number - 1):
                self._fetcher.want(header.parent_hash, header.number - 1, peer, wait_s=0.0)
            return
        try:
            if is_verified or await self._is_good(peer, header, parent):
                self._pass_on(block)
                await self._import(block)
        finally:
            self._held.remove(header.hash, peer)
        self._continue(header)

    async def _is_good(self, peer: EthPeer, header: HashedHeader, parent: HashedHeader) -> bool:
        """Whether a header is valid. Waits until the timestamp of a slightly early header. An invalid header
        disconnects the peer.
        """
        engine, chain = self._chain.engine, self._chain
        for _ in range(2):
            try:
                await self._lane.run(peer.peer, lambda: engine.verify(header, parent, chain, int(self._clock.now())))
            except InvalidBlock as error:
                lead_s = header.timestamp - self._clock.now()
                if error.transient and lead_s <= _MAX_LEAD_S:
                    await asyncio.sleep(max(lead_s, 0.0))
                    continue
                if not error.transient:
                    self.refused([header.header])
                    log.warning("announced block refused peer=%r error=%s", peer, error)
                    peer.peer.disconnect(DisconnectReason.BREACH, f"announced block {header}: {error}")
                return False
            except UnknownParent:
                return False
            return True
        return False

    async def _import(self, block: ChainBlock) -> None:
        header = block.header
        self._foreign.add(header.hash)
        try:
            imported = await self._importer.import_block(block)
        except (InvalidBlock, UnknownParent) as error:
            # do not blame the peer, because peers relay a block after verifying only its header
            log.warning("announced block not imported block=%s error=%s", header, error)
            return
        if imported.outcome is not ImportOutcome.KNOWN:
            log.info(
                "imported block number=%d hash=0x%s txs=%d",
                header.number,
                header.hash.hex(),
                block.body.transaction_count,
            )
            self._announce_hash(header)

    def _continue(self, parent: HashedHeader) -> None:
        """Import the blocks that waited for this parent, or drop them if the import of the parent failed."""
        is_here = self._chain.header(parent.hash) is not None
        for block in self._orphans.pop(parent.hash, ()):
            hash = block.header.hash
            peer = self._held.sender(hash)
            if not is_here or not self._tasks.spawn(self._bring_in(peer, block), peer):
                self._held.remove(hash)

    def _forget_old_orphans(self) -> None:
        for parent, waiting in tuple(self._orphans.items()):
            if not self._is_near(waiting[0].header.number):
                del self._orphans[parent]
                for block in waiting:
                    self._held.remove(block.header.hash)

    # --- announcing blocks ----------------------------------------------------------------------

    def on_chain_event(self, event: ChainEvent) -> None:
        """Announce an own block, and import held blocks whose parent is now in the chain."""
        blocks = event.added if isinstance(event, Reorged) else event.blocks
        head = blocks[-1]
        if head.header.hash not in self._foreign and self._is_open:
            self._announce_own(head)
        for block in blocks:
            self._fetcher.arrived(block.header.hash)
            if block.header.hash in self._orphans and block.header.hash not in self._held:
                self._continue(block.header)
        self._forget_old_orphans()

    def note_synchronised(self, blocks: Collection[ChainBlock]) -> None:
        """Record blocks that synchronisation is about to import. Such blocks are not announced one by one."""
        self._foreign.update([block.header.hash for block in blocks])

    def announce_head_again(self) -> None:
        """Announce the head again to peers that may lack it, because a peer may have dropped the first announcement."""
        if self._is_open:
            head = self._chain.head
            payload = encode_new_hashes([(head.hash, head.number)])
            for peer in self._peers:
                has_head = peer.head.hash == head.hash or (self._is_final and peer.height >= head.number)
                if not has_head:
                    self._send_hash(peer, head, payload)

    def announce_head(self) -> None:
        """Announce the head after synchronisation, because some peers may be connected to this node only."""
        if self._is_open:
            self._announce_hash(self._chain.head)

    def _announce_own(self, block: ChainBlock) -> None:
        """Announce a block that this node produced, or decided together with other validators."""
        self._pass_on(block)
        self._announce_hash(block.header)

    def _pass_on(self, block: ChainBlock) -> None:
        """Send a block in full to the peers that may not have the block. In a large network, only a random sample of
        these peers gets the block.
        """
        header, peers = block.header, list(self._peers)
        holders = self._holders(header)
        receivers = [
            peer for peer in peers if header.hash not in peer.known_blocks and peer.peer.address not in holders
        ]
        if len(peers) > _MAX_FULL_RECIPIENTS:
            receivers = self._random.sample(receivers, min(len(receivers), max(1, isqrt(len(peers)))))
        if not receivers:
            return
        parent_difficulty = self._chain.total_difficulty(header.parent_hash) or 0
        payload = encode_new_block(encode_block(block), parent_difficulty + header.header.difficulty)
        for peer in receivers:
            if peer.send(Code.NEW_BLOCK, payload):
                peer.known_blocks.add(header.hash)
                self.sent += 1

    def _holders(self, header: HashedHeader) -> Collection[Address]:
        """Addresses of the validators that decided the block. Such validators have the block, so this node sends them
        only its hash.
        """
        if not self._is_final:
            return ()
        parent = self._chain.header(header.parent_hash)
        try:
            return () if parent is None else self._chain.engine.members(parent, self._chain)
        except OphionError:
            return ()

    def _announce_hash(self, header: HashedHeader) -> None:
        payload = encode_new_hashes([(header.hash, header.number)])
        for peer in self._peers:
            if header.hash not in peer.known_blocks:
                self._send_hash(peer, header, payload)

    def _send_hash(self, peer: EthPeer, header: HashedHeader, payload: bytes) -> None:
        if peer.send(Code.NEW_BLOCK_HASHES, payload):
            peer.known_blocks.add(header.hash)
