"""`EthProtocol`: the eth sub-protocol over one chain and one pool.

It offers the versions, sends and checks Status, and dispatches messages to their handlers. As a service it runs tasks
that outlive connections: block imports and periodic announcements of the head and the block range.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from ophion.chain.block_producers import BlockProducers
from ophion.chain.chain import Chain
from ophion.chain.events import ChainEvent
from ophion.chain.importer import Importer
from ophion.consensus.engine import Finality
from ophion.consensus.missed_migration import missed_migration, unknown_rules
from ophion.errors import OphionError
from ophion.peers.eth.block_gossip import BlockGossip
from ophion.peers.eth.detached_tasks import DetachedTasks
from ophion.peers.eth.fork_id import ForkId, ForkIds
from ophion.peers.eth.messages import BlockRange, Code, Status, max_block_bytes
from ophion.peers.eth.peer import EthPeer, Handler
from ophion.peers.eth.peers import EthPeers
from ophion.peers.eth.request_handler import RequestHandler
from ophion.peers.eth.response_reader import ResponseReader
from ophion.peers.eth.transaction_gossip import TransactionGossip
from ophion.peers.eth.versions import NAME, VERSIONS, EthVersion, offered
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Capability
from ophion.pool.pool import TxPool
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import ZERO_HASH, Address
from ophion.runtime.clock import Clock
from ophion.runtime.thread_pools import Lanes

log = logging.getLogger(__name__)

REANNOUNCE_S: Final = 3.0
"""Seconds without a new head after which the head is announced again."""
RANGE_BLOCKS: Final = 32
RANGE_S: Final = 120.0


class EthProtocol:
    """The eth subprotocol. Also runs as a service of the node, for tasks that outlive connections."""

    name = "eth"

    def __init__(
        self,
        chain: Chain,
        importer: Importer,
        pool: TxPool,
        lanes: Lanes,
        clock: Clock,
        random: Random,
        network_id: int,
    ) -> None:
        self.chain = chain
        self.lane = FairWorkerQueue(lanes.peers, self.is_member_node)
        """Worker threads for database reads and decoding on behalf of peers. Jobs of network members run first."""
        self.peers = EthPeers()
        self.network_id = network_id
        self.versions = offered(chain.engine.finality is Finality.IMMEDIATE)
        self.capabilities: Sequence[Capability] = tuple(version.capability for version in self.versions)
        self.fork_ids = ForkIds.of(chain.spec, chain.genesis.hash, chain.genesis.timestamp)
        self.announced_rules: dict[Address, int] = {}
        """Block producers that announced fork rules which this node does not know, each with the first block of these
        rules.
        """
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_accepting: Callable[[], bool] = lambda: True
        """Whether to process transactions of peers. Set by the synchroniser."""
        self._tasks = DetachedTasks(self.is_member)
        self._max_block_bytes = max_block_bytes(chain.head.header.gas_limit)
        self._answers = ResponseReader(chain, pool)
        self.blocks = BlockGossip(chain, importer, self.peers, self._tasks, self.lane, clock, random, self.is_member)
        self.blocks.refused = self.refused
        self.makers = BlockProducers(chain)
        """Addresses of the producers of the next blocks."""
        self.transactions = TransactionGossip(
            pool, self.peers, self.makers, self.lane, random, lambda: self.is_accepting(), self.is_member
        )
        self._handlers: dict[Code, Handler] = {
            Code.NEW_BLOCK: self.blocks.received,
            Code.NEW_BLOCK_HASHES: self.blocks.announced,
            Code.TRANSACTIONS: self.transactions.received,
            Code.NEW_POOLED_TRANSACTION_HASHES: self.transactions.announced,
        }
        self._announced_number = chain.head.number
        """Head number of the last BlockRangeUpdate."""
        chain.events.listen(self._on_chain_event)

    # --- Service (called by the node) -----------------------------------------------------------

    async def run(self, ready: Callable[[], None]) -> None:
        """Run the detached tasks. Raises an error when the network has fork rules that this node does not know."""
        self._loop = asyncio.get_running_loop()

        def begin() -> None:
            self._tasks.spawn(self._announce_range_periodically())
            self._tasks.spawn(self._announce_again())
            ready()

        await self._tasks.run(begin)

    # --- Subprotocol (called by the connection) -------------------------------------------------

    def attach(self, peer: Peer, version: int) -> EthPeer:
        """Start eth on a connection."""
        spoken = VERSIONS[version]
        attached = EthPeer(peer, spoken, self, RequestHandler(peer, spoken, self._answers, self.lane), self._handlers)
        attached.start()
        return attached

    # --- Host (called by each `EthPeer`) --------------------------------------------------------

    @property
    def fork_id(self) -> ForkId:
        """The fork identifier at the current head."""
        head = self.chain.head
        return self.fork_ids.at(head.number, head.timestamp)

    @property
    def max_block_bytes(self) -> int:
        """The size limit of a NewBlock, from the gas limit of the head."""
        return self._max_block_bytes

    def is_member(self, peer: EthPeer) -> bool:
        """Whether a peer produces blocks, is a static node or is listed in the permissions."""
        return self.is_member_node(peer.peer)

    def is_member_node(self, peer: Peer) -> bool:
        """Whether a peer is a member: a block producer, a static node or a permitted node."""
        return peer.is_static or peer.is_permitted or peer.validator_address in self.makers

    def status(self, version: EthVersion) -> Status:
        tip = self.chain.tip
        return Status(
            version=version.number,
            network_id=self.network_id,
            genesis=self.chain.genesis.hash,
            fork_id=self.fork_id,
            best_hash=tip.header.hash,
            total_difficulty=tip.total_difficulty,
            earliest=self.chain.history_start,
            latest=tip.header.number,
        )

    def problem(self, status: Status, version: EthVersion) -> str | None:
        if status.version != version.number:
            return f"its Status has version eth/{status.version}, the connection uses eth/{version.number}"
        if status.network_id != self.network_id:
            return f"its network id is {status.network_id}, ours {self.network_id}"
        if status.genesis != self.chain.genesis.hash:
            return f"its genesis is 0x{status.genesis.hex()}, ours 0x{self.chain.genesis.hash.hex()}"
        if status.latest is not None and (status.earliest > status.latest or status.best_hash == ZERO_HASH):
            return f"its block range {status.earliest} to {status.latest} is invalid"
        head = self.chain.head
        return self.fork_ids.problem(status.fork_id, head.number, head.timestamp)

    def note_rules(self, peer: EthPeer, status: Status) -> None:
        """Remember the block producers that announce fork rules which this node does not know. Called before the Status
        is checked.
        """
        address = peer.peer.address
        if status.genesis != self.chain.genesis.hash or status.network_id != self.network_id:
            return
        if address not in self.makers:
            return
        head = self.chain.head
        first = self.fork_ids.first_unknown(status.fork_id, head.number, head.timestamp)
        if first is None:
            self.announced_rules.pop(address, None)
        elif self.announced_rules.get(address) != first:
            self.announced_rules[address] = first
            log.warning("member announces rules that the genesis file does not have peer=%r block=%d", peer, first)
            self._check_announced(head)

    def _check_announced(self, head: HashedHeader) -> None:
        """Stop the node if enough block producers announce that the next block has rules unknown to this node."""
        if self.announced_rules:
            members = self.chain.engine.members(head, self.chain)
            error = unknown_rules(self.announced_rules.items(), members, head.number + 1)
            if error is not None:
                self._stop(error)

    def refused(self, headers: Sequence[Header]) -> None:
        """Stop the node if a refused header proves that the network has moved to QBFT. May run in any thread."""
        if self._loop is None:
            return
        for header in headers:
            found = missed_migration(header, self.chain.engine, self.chain)
            if found is not None:
                self._loop.call_soon_threadsafe(self._stop, found)
                return

    def _stop(self, error: OphionError) -> None:
        """Stop the node with an error, by ending this service."""

        async def fail() -> None:
            raise error

        self._tasks.spawn(fail())

    def became_ready(self, peer: EthPeer) -> None:
        self.peers.add(peer)
        self.blocks.joined(peer)
        self.transactions.joined(peer)

    def raised(self, peer: EthPeer) -> None:
        self.peers.changed.publish(peer)

    def left(self, peer: EthPeer) -> None:
        self.peers.remove(peer)
        self.transactions.left(peer)
        self.blocks.left(peer)

    # --- chain events ---------------------------------------------------------------------------

    def _on_chain_event(self, event: ChainEvent) -> None:
        self._check_announced(event.head)
        self.blocks.on_chain_event(event)
        self.transactions.on_chain_event(event)
        self._limit_blocks(event.head.header.gas_limit)
        if event.head.number - self._announced_number >= RANGE_BLOCKS:
            self._announce_range()

    def _limit_blocks(self, gas_limit: int) -> None:
        size = max_block_bytes(gas_limit)
        if size != self._max_block_bytes:
            self._max_block_bytes = size
            for peer in self.peers:
                peer.peer.limit(NAME, Code.NEW_BLOCK, size)

    async def _announce_again(self) -> None:
        """Announce an unchanged head again, because a busy peer may have dropped the first announcement."""
        last = self.chain.head.hash
        while True:
            await asyncio.sleep(REANNOUNCE_S)
            if self.chain.head.hash == last:
                self.blocks.announce_head_again()
            last = self.chain.head.hash

    def _announce_range(self) -> None:
        head = self.chain.head
        self._announced_number = head.number
        payload = BlockRange(self.chain.history_start, head.number, head.hash).encode()
        for peer in self.peers:
            if Code.BLOCK_RANGE_UPDATE in peer.version.codes:
                peer.send(Code.BLOCK_RANGE_UPDATE, payload)

    async def _announce_range_periodically(self) -> None:
        while True:
            await asyncio.sleep(RANGE_S)
            if self.chain.head.number != self._announced_number:
                self._announce_range()
