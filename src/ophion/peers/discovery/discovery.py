"""`Discovery`: the discovery protocol of one node, without a socket.

Packets arrive through `received` and leave through `DiscoveryContext.send`. Every request has a timeout and belongs to
one node at one address; unsolicited responses are ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from random import Random
from typing import Final

from msgspec import Struct, field

from ophion.errors import DecodeError
from ophion.native import wire
from ophion.native.crypto import PrivateKey
from ophion.native.wire import WireError
from ophion.peers.discovery.endpoint_proofs import EndpointProofs
from ophion.peers.discovery.lookup import Lookup
from ophion.peers.discovery.neighbor_filter import is_plausible
from ophion.peers.discovery.node_record import LocalRecord, Record
from ophion.peers.discovery.packets import (
    Endpoint,
    FindNode,
    Neighbor,
    Neighbors,
    Packet,
    PacketKind,
    Ping,
    Pong,
    RecordRequest,
    RecordResponse,
    decode,
    encode,
)
from ophion.peers.discovery.routing_table import BUCKET_SIZE, RoutingTable, place_of
from ophion.peers.policy.pending_limit import PendingLimit
from ophion.permissions.node_rules import Action
from ophion.primitives import rlp
from ophion.primitives.enode import NODE_ID_LENGTH, Enode
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

_MAX_PACKET_BYTES: Final = 1600
_EXPIRY_S: Final = 60
_MAX_EXPIRATION: Final = 2**63 - 1
_RESPONSE_TIMEOUT_S: Final = 0.8
_PING_BACK_S: Final = 0.5
"""Seconds to wait before a request to a node that has no proof of this node's endpoint. During this time the node can
ping this node and get a Pong, which is the proof.
"""
_MAX_NEIGHBORS: Final = 12
_MAX_OPEN: Final = 256
"""Limit of concurrent requests that this node starts itself."""
_MAX_RETURNED: Final = 128
"""Limit of concurrent Pings to unproven nodes that pinged this node first. These Pings do not count against
`_MAX_OPEN`.
"""
_MAX_LEARNING: Final = 16
"""Limit of concurrent record requests to nodes without a reserved slot."""
_MAX_SUITABLE: Final = 1024
_MAX_FAILURES: Final = 5
"""Number of consecutive requests without a response after which a node is removed."""
_FIRST_INTERVALS_S: Final = (2.0, 5.0, 10.0)
_LOOKUP_INTERVAL_S: Final = 30.0
_IDLE_INTERVAL_S: Final = 1800.0
"""Seconds between lookups when the node has enough peers."""
_CHECK_INTERVAL_S: Final = (5.0, 10.0)

Address = tuple[str, int]
_Key = tuple[bytes, str, PacketKind]
"""Key of an open request: node id, IP and expected response type. The IP matters, because Neighbors may name a wrong
address.
"""


class EthEntry(Struct, frozen=True):
    """Reads and writes the `eth` entry of node records, which identifies the chain before a connection."""

    entry: Callable[[], bytes | None] = lambda: None
    """Returns the RLP of this node's `eth` entry."""
    is_ours: Callable[[rlp.Item], bool] = lambda fork_id: True
    """Whether a remote fork identifier is compatible with our chain."""


class DiscoveryContext(Struct, frozen=True):
    """Callbacks that `Discovery` uses to send packets, check rules and report nodes."""

    send: Callable[[bytes, Address], None]
    offer: Callable[[Enode], None]
    """Receives live nodes whose record does not name another chain."""
    wants_more: Callable[[], bool]
    """Whether the peer limit allows more peers."""
    may: Callable[[Enode, Action], bool] = lambda enode, action: True
    """Whether subnets, bans and permissions allow an action for a node."""
    is_reserved: Callable[[bytes], bool] = lambda node_id: False
    """Whether a node has a reserved slot: a static peer, a bootnode or a validator."""
    chain: EthEntry = field(default_factory=EthEntry)


class _Request(Struct):
    """An open request to a node."""

    enode: Enode
    hash: bytes
    answer: asyncio.Future[bool]
    timer: asyncio.TimerHandle
    found: list[Enode] = field(default_factory=list)
    record: Record | None = None


class Discovery:
    """The discovery protocol of the local node."""

    def __init__(
        self,
        key: PrivateKey,
        host: str,
        record: LocalRecord,
        bootnodes: Sequence[Enode],
        clock: Clock,
        random: Random,
        context: DiscoveryContext,
    ) -> None:
        self._key = key
        self._own_id = key.public_key
        self._host = host
        self._tcp_port = self._udp_port = 0
        self._bootnodes: tuple[Enode, ...] = ()
        self._clock = clock
        self._random = random
        self._context = context
        self._bonds = EndpointProofs()
        self._open: dict[_Key, _Request] = {}
        self._returned: PendingLimit[_Key] = PendingLimit(max_pending=_MAX_RETURNED)
        """Open Pings to unproven nodes that pinged this node first."""
        self._failures: Counter[bytes] = Counter()
        self._suitable: dict[bytes, Enode] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._learning: set[bytes] = set()
        self._learning_reserved: set[bytes] = set()
        self.record = record
        self.buckets = RoutingTable(self._own_id)
        self.set_bootnodes(bootnodes)
        self.received_count: Counter[str] = Counter()
        """Received packets by type. The type `bad` counts undecodable and expired packets."""
        self.sent_count: Counter[str] = Counter()
        self.asked_count: Counter[str] = Counter()
        """Number of sent requests by type."""
        self.repeated_count: Counter[str] = Counter()
        """Number of requests that repeat an unanswered request of the same type to the same node."""
        self._silent: dict[_Key, None] = {}
        """Recent requests without a response."""

    @property
    def open_questions(self) -> int:
        return len(self._open)

    def settle(self, tcp_port: int, udp_port: int, host: str | None = None) -> None:
        """Set the local endpoint and update the local node record."""
        self._tcp_port, self._udp_port = tcp_port, udp_port
        self._host = host or self._host
        self._update_record()

    def forget(self, node_id: bytes) -> None:
        """Remove a node from the routing table. A later response of the node adds the node again."""
        self.buckets.remove(node_id)
        self._suitable.pop(node_id, None)
        self._failures.pop(node_id, None)

    # --- main task -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look up new nodes and check known nodes, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self._check_loop())
                await self._lookup_loop()
        finally:
            self._tasks = None
            for key, request in tuple(self._open.items()):
                request.timer.cancel()
                request.answer.cancel()
                self._returned.leave(key)
            self._open.clear()

    async def _lookup_loop(self) -> None:
        for wait in chain(_FIRST_INTERVALS_S, repeat(None)):
            self._update_record()
            # ping bootnodes outside the table even while their endpoint proofs are valid, because such nodes may be
            # online again
            absent = [node for node in self._bootnodes if self.buckets.get(node.node_id) is None]
            await asyncio.gather(*(self.ping(node) for node in absent))
            await self.lookup(self._own_id)
            if wait is None:
                # a lookup of a random target fills buckets that are far from this node's own id
                await self.lookup(self._random.randbytes(NODE_ID_LENGTH))
            interval = _LOOKUP_INTERVAL_S if self._context.wants_more() else _IDLE_INTERVAL_S
            await asyncio.sleep(interval if wait is None else wait)

    async def _check_loop(self) -> None:
        """Ping the least recently seen node of a random bucket every few seconds, and remove it after two failures."""
        while True:
            await asyncio.sleep(self._random.uniform(*_CHECK_INTERVAL_S))
            enode = self.buckets.any(self._random)
            if enode is not None and not await self.ping(enode) and not await self.ping(enode):
                self.forget(enode.node_id)

    def set_bootnodes(self, bootnodes: Sequence[Enode]) -> None:
        """Set the bootnodes whose addresses are known, and ping the new bootnodes."""
        before = self._bootnodes
        self._bootnodes = tuple(one for one in bootnodes if one.ip and one.node_id != self._own_id)
        if self._tasks is not None:
            for one in self._bootnodes:
                if one not in before:
                    self._tasks.create_task(self._find(one))

    async def _find(self, bootnode: Enode) -> None:
        if await self.ping(bootnode):
            await self.lookup(self._own_id)

    # --- requests --------------------------------------------------------------------------------------

    async def ping(self, enode: Enode) -> bool:
        """Ping a node. Returns whether the node answered."""
        request = self._ask_for_pong(enode)
        if request is None:
            return False
        # the open Ping may have been sent in return for a Ping of the remote node: from now on, count it against
        # `_MAX_OPEN`
        self._returned.leave((enode.node_id, enode.ip, PacketKind.PONG))
        return await asyncio.shield(request.answer)

    def recheck(self) -> None:
        """Remove from the routing table the nodes that permissions or bans now forbid. After a removal, also drop all
        endpoint proofs.
        """
        dropped = [enode for enode in self.buckets if not self._context.may(enode, Action.KEEP_IN_TABLE)]
        for enode in dropped:
            self.forget(enode.node_id)
        if dropped:
            self._bonds = EndpointProofs()

    async def lookup(self, target: bytes) -> list[Enode]:
        """Run an iterative lookup; returns the closest nodes found."""
        walk = Lookup(target, self._own_id, self.buckets.closest(place_of(target)))
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                running |= {asyncio.create_task(self._ask_on(walk, enode)) for enode in walk.next_nodes()}
                if not running:
                    return walk.nearest
                _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in running:
                task.cancel()

    async def find(self, enode: Enode, target: bytes) -> list[Enode] | None:
        """Send FindNode to a node. Returns its neighbours, or None if the request is forbidden or not answered."""
        if not await self._ensure_bond(enode):
            return None
        if not self._context.may(enode, Action.SEND_FIND_NODE):
            return None
        request = self._ask(enode, FindNode(target, self._expiry()), PacketKind.NEIGHBORS)
        if request is None:
            return None
        has_answered = await asyncio.shield(request.answer) or bool(request.found)
        return request.found if has_answered else None

    async def request_record(self, enode: Enode) -> Record | None:
        """Request the record of a node. Returns None if the node does not respond."""
        if not await self._ensure_bond(enode):
            return None
        request = self._ask(enode, RecordRequest(self._expiry()), PacketKind.RECORD_RESPONSE)
        if request is None or not await asyncio.shield(request.answer):
            return None
        return request.record

    async def _ask_on(self, walk: Lookup, enode: Enode) -> None:
        found = await self.find(enode, walk.target)
        if found is not None:
            self._failures.pop(enode.node_id, None)
            walk.answered(enode.node_id, found)
            return
        walk.failed(enode.node_id)
        known = self.buckets.get(enode.node_id)
        # count a failure only at the address in the table, because a Neighbors packet may contain a wrong address
        if known is not None and (known.ip, known.udp_port) == (enode.ip, enode.udp_port):
            self._failures[enode.node_id] += 1
            if self._failures[enode.node_id] >= _MAX_FAILURES:
                self.forget(enode.node_id)

    async def _ensure_bond(self, enode: Enode) -> bool:
        """Get an endpoint proof of a node, and give the node time to get ours. Returns False without an answer to a
        Ping.
        """
        if not self._is_proven(enode) and not await self.ping(enode):
            return False
        if not self._bonds.has_our_proof(enode.node_id, enode.ip, self._clock.monotonic()):
            await asyncio.sleep(_PING_BACK_S)
        return True

    def _is_proven(self, enode: Enode) -> bool:
        return self._proven(enode.node_id, enode.ip) is not None

    def _proven(self, node_id: bytes, ip: str) -> Enode | None:
        """Return the node if it has proven this endpoint, otherwise None. A node in the table needs no proof."""
        known = self._bonds.proven(node_id, ip, self._clock.monotonic()) or self.buckets.get(node_id)
        return known if known is not None and known.ip == ip else None

    def _ask_for_pong(self, enode: Enode) -> _Request | None:
        if not self._context.may(enode, Action.SEND_PING):
            return None
        sender = Endpoint(self._host, self._udp_port, self._tcp_port)
        ping = Ping(sender, Endpoint(enode.ip, enode.udp_port, 0), self._expiry(), self.record.seq)
        return self._ask(enode, ping, PacketKind.PONG)

    def _ask(self, enode: Enode, packet: Packet, answer: PacketKind) -> _Request | None:
        """Send a request, or return the open request of the same type to the same node. None if too many requests are
        open.
        """
        key = (enode.node_id, enode.ip, answer)
        if (known := self._open.get(key)) is not None:
            return known
        if len(self._open) - len(self._returned) >= _MAX_OPEN:
            return None
        loop = asyncio.get_running_loop()
        timer = loop.call_later(_RESPONSE_TIMEOUT_S, self._close, key, False)
        request = self._open[key] = _Request(enode, b"", loop.create_future(), timer)
        kind, request.hash = self._send(packet, (enode.ip, enode.udp_port))
        self.asked_count[kind] += 1
        self.repeated_count[kind] += key in self._silent
        return request

    def _close(self, key: _Key, is_answered: bool) -> None:
        request = self._open.pop(key, None)
        if request is not None:
            request.timer.cancel()
            self._returned.leave(key)
            self._silent.pop(key, None)
            if not is_answered:
                self._silent[key] = None
                if len(self._silent) > _MAX_OPEN:
                    del self._silent[next(iter(self._silent))]
            if not request.answer.done():
                request.answer.set_result(is_answered)

    def _send(self, packet: Packet, address: Address) -> tuple[str, bytes]:
        """Sign and send a packet; returns its type name and hash."""
        kind, data = encode(packet)
        datagram = wire.seal_packet(self._key.secret(), kind, data)
        name = kind.name.lower()
        self.sent_count[name] += 1
        self._context.send(datagram, address)
        return name, datagram[:32]

    def _expiry(self) -> int:
        return int(self._clock.now()) + _EXPIRY_S

    # --- received packets -------------------------------------------------------------------------------------

    def received(self, datagram: bytes, ip: str, port: int) -> None:
        """Handle one packet; invalid packets are counted and dropped."""
        if len(datagram) > _MAX_PACKET_BYTES:
            self.received_count["bad"] += 1
            return
        try:
            digest, node_id, kind, data = wire.open_packet(datagram)
            packet = decode(kind, data)
        except (WireError, DecodeError):
            self.received_count["bad"] += 1
            return
        if not isinstance(packet, RecordResponse) and self._has_expired(packet.expiration):
            self.received_count["bad"] += 1
            return
        if node_id == self._own_id:
            return
        self.received_count[PacketKind(kind).name.lower()] += 1
        match packet:
            case Ping():
                self._on_ping(packet, digest, node_id, ip, port)
            case Pong():
                self._on_pong(packet, node_id, ip)
            case FindNode():
                self._on_find_node(packet, node_id, ip, port)
            case Neighbors():
                self._on_neighbors(packet, node_id, ip)
            case RecordRequest():
                self._on_record_request(digest, node_id, ip, port)
            case RecordResponse():
                self._on_record(packet, node_id, ip)

    def _has_expired(self, expiration: int) -> bool:
        """Whether a packet has expired. An expiration above 2**63 - 1 counts as expired, because other clients read it
        as a signed number.
        """
        return expiration < self._clock.now() or expiration > _MAX_EXPIRATION

    def _on_ping(self, ping: Ping, digest: bytes, node_id: bytes, ip: str, port: int) -> None:
        enode = Enode(node_id, ip, ping.sender.tcp_port, port)
        if not self._context.may(enode, Action.ACCEPT_PING):
            return
        receiver = Endpoint(ip, port, ping.sender.tcp_port)
        self._send(Pong(receiver, digest, self._expiry(), self.record.seq), (ip, port))
        now = self._clock.monotonic()
        self._bonds.note_our_proof(node_id, ip, now)
        if self._bonds.proven(node_id, ip, now) is None:
            self._return_ping(enode)
        elif self.buckets.get(node_id) is not None:
            self._keep(enode)

    def _return_ping(self, enode: Enode) -> None:
        """Ping a node that has pinged this node and has not proven its endpoint. If too many such Pings are open, drop
        a Ping to the IP that has the most.
        """
        key = (enode.node_id, enode.ip, PacketKind.PONG)
        if key in self._open or self._ask_for_pong(enode) is None:
            return
        evicted = self._returned.enter(key, enode.ip, is_known=False)
        if evicted is not None:
            self._close(evicted, False)

    def _on_pong(self, pong: Pong, node_id: bytes, ip: str) -> None:
        request = self._open.get((node_id, ip, PacketKind.PONG))
        if request is None or request.hash != pong.ping_hash:
            return
        enode = request.enode
        is_new = self._bonds.prove(enode, self._clock.monotonic())
        self._keep(enode)
        self._close((node_id, ip, PacketKind.PONG), True)
        if is_new or (node_id not in self._suitable and self._context.wants_more()):
            self._learn_about(enode)
        elif node_id in self._suitable:
            self._context.offer(self._suitable[node_id])

    def _on_find_node(self, request: FindNode, node_id: bytes, ip: str, port: int) -> None:
        requester = self._proven(node_id, ip)
        if requester is None or not self._context.may(requester, Action.ANSWER_FIND_NODE):
            return
        near = [
            Neighbor(Endpoint(enode.ip, enode.udp_port, enode.tcp_port), enode.node_id)
            for enode in self.buckets.closest(place_of(request.target), BUCKET_SIZE + 1)
            if enode.node_id != node_id and is_plausible(enode.ip, enode.udp_port, ip)
        ][:BUCKET_SIZE]
        for start in range(0, max(len(near), 1), _MAX_NEIGHBORS):
            self._send(Neighbors(tuple(near[start : start + _MAX_NEIGHBORS]), self._expiry()), (ip, port))

    def _on_neighbors(self, packet: Neighbors, node_id: bytes, ip: str) -> None:
        request = self._open.get((node_id, ip, PacketKind.NEIGHBORS))
        if request is None:
            return
        for node in packet.nodes[:BUCKET_SIZE]:
            at = node.endpoint
            if is_plausible(at.ip, at.udp_port, ip):
                request.found.append(Enode(node.node_id, at.ip, at.tcp_port, at.udp_port))
        if len(packet.nodes) < _MAX_NEIGHBORS or len(request.found) >= BUCKET_SIZE:
            self._close((node_id, ip, PacketKind.NEIGHBORS), True)

    def _on_record_request(self, digest: bytes, node_id: bytes, ip: str, port: int) -> None:
        if self._proven(node_id, ip) is not None:
            self._update_record()
            self._send(RecordResponse(digest, self.record.encoded), (ip, port))

    def _on_record(self, packet: RecordResponse, node_id: bytes, ip: str) -> None:
        request = self._open.get((node_id, ip, PacketKind.RECORD_RESPONSE))
        if request is None or request.hash != packet.request_hash:
            return
        try:
            record = Record.read(packet.record)
        except WireError:
            return
        if record.node_id == node_id:
            request.record = record
            self._close((node_id, ip, PacketKind.RECORD_RESPONSE), True)

    def _keep(self, enode: Enode) -> None:
        if self._context.may(enode, Action.KEEP_IN_TABLE):
            self.buckets.add(enode)

    # --- offers to the dialer ------------------------------------------------------------------------------------

    def _learn_about(self, enode: Enode) -> None:
        """Start a task that requests the record of a newly proven node and then offers the node for dialling.

        The limit of concurrent record requests does not apply to nodes with a reserved slot.
        """
        is_reserved = self._context.is_reserved(enode.node_id)
        learning = self._learning_reserved if is_reserved else self._learning
        if self._tasks is None or enode.node_id in learning or (not is_reserved and len(learning) >= _MAX_LEARNING):
            return
        learning.add(enode.node_id)
        self._tasks.create_task(self._learn(enode, learning))

    async def _learn(self, enode: Enode, learning: set[bytes]) -> None:
        try:
            # wait, so that requests of the remote node to this node come first
            await asyncio.sleep(_PING_BACK_S)
            record = await self.request_record(enode)
            if record is not None and record.chain is not None and not self._context.chain.is_ours(record.chain):
                log.debug("ignored node of another chain enode=%s", enode)
                return
            tcp_port = (None if record is None else record.tcp_port) or enode.tcp_port
            suitable = Enode(enode.node_id, enode.ip, tcp_port, enode.udp_port)
            self._suitable.pop(enode.node_id, None)
            self._suitable[enode.node_id] = suitable
            if len(self._suitable) > _MAX_SUITABLE:
                del self._suitable[next(iter(self._suitable))]
            self._context.offer(suitable)
        finally:
            learning.discard(enode.node_id)

    def _update_record(self) -> None:
        self.record.update(self._host, self._tcp_port, self._udp_port, self._context.chain.entry())
