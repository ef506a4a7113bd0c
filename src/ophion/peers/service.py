"""`PeerService`: listens, runs discovery, dials, and holds the connected peers.

All work is one task tree: a task for each inbound connection, for each dial attempt with its connection, and for the
dialer. Stopping sends every peer a Disconnect (client quitting) and takes two seconds at most.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Collection, Sequence
from random import Random

from ophion.errors import OphionError
from ophion.native.crypto import PrivateKey, address_of
from ophion.native.wire import WireError
from ophion.peers.connection.connection import Connection
from ophion.peers.connection.context import ConnectionEnd, PeerContext
from ophion.peers.connection.pre_handshake import PreHandshake
from ophion.peers.connection.receive_scheduler import ReceiveScheduler
from ophion.peers.connection.traffic import Traffic
from ophion.peers.dial_outcome import outcome_of
from ophion.peers.dialer import Dialer
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.discovery.discovery import Discovery, DiscoveryContext, EthEntry
from ophion.peers.discovery.node_record import LocalRecord
from ophion.peers.discovery.udp import UdpSocket
from ophion.peers.inbound import InboundConnections
from ophion.peers.node_access import NodeAccess
from ophion.peers.open_connections import OpenConnections
from ophion.peers.peer import Peer
from ophion.peers.peer_table import Peers
from ophion.peers.policy.admission import Admission
from ophion.peers.policy.bans import Bans
from ophion.peers.policy.dial_plan import DialPlan
from ophion.peers.policy.pending_limit import PendingLimit
from ophion.peers.port_mapping import PortMapping
from ophion.peers.ports import open_ports
from ophion.peers.rlpx.capability import Capability
from ophion.peers.rlpx.hello import Hello
from ophion.peers.rlpx.session import Identity, Session
from ophion.peers.settings import PeerSettings
from ophion.peers.subprotocol import Subprotocol
from ophion.permissions.node_rules import Action, NodeRules
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.host_name_resolver import HostNames

log = logging.getLogger(__name__)


class PeerService:
    """Runs all peer connections of the node."""

    name = "P2P service"

    def __init__(
        self,
        settings: PeerSettings,
        key: PrivateKey,
        subprotocols: Sequence[Subprotocol],
        clock: Clock,
        entropy: Entropy,
        peers: Peers | None = None,
        rules: NodeRules | None = None,
        chain: EthEntry | None = None,
        is_member: Callable[[Address], bool] = lambda address: False,
        host_names: HostNames | None = None,
    ) -> None:
        """Create the peer service. `rules` decide which nodes are permitted (None permits all). `is_member` returns
        whether an address is a validator.

        `host_names` resolves the host names of static nodes and bootnodes (None if all have IP addresses).
        """
        self._settings = settings
        self._key = key
        self._subprotocols = tuple(subprotocols)
        self._clock, self._entropy = clock, entropy
        self.peers = Peers() if peers is None else peers
        self.traffic = Traffic()
        self.bans = Bans()
        # this randomness only chooses delays and lookup targets, so it need not be unpredictable
        random = Random(entropy.token(16))
        bootnodes = {enode.node_id for enode in settings.bootnodes}
        self.plan = DialPlan(
            key.public_key, random, lambda node_id: node_id in bootnodes or is_member(address_of(node_id))
        )
        self.pending: PendingLimit[Connection | PreHandshake] = PendingLimit(settings.subnets)
        self._admission = Admission(
            key.public_key, self.peers, settings.limits, self.bans, self.plan.has_reserved_slot, settings.banned
        )
        self._rules = rules or NodeRules(key.public_key)
        self._access = NodeAccess(settings, self._rules, self.plan, self._admission, self.peers, clock)
        self._inbound = InboundConnections(
            key,
            clock,
            self.pending,
            settings.timing.handshake,
            self.plan.is_static_address,
            self._access.is_expected,
            self._receive,
        )
        self._dialer = Dialer(
            self.plan, self.peers, settings.limits.max_peers, clock, self._access.may_dial, self._connect
        )
        self._rules.peer_ids = lambda: (peer.id for peer in self.peers)
        self._rules.changed.listen(lambda _: self.recheck())
        self._rules.changed.listen(lambda _: self._inbound.flood_guard.reconsider())
        self.discovery = self._discovery(chain or EthEntry(), random) if settings.has_discovery else None
        """The discovery protocol. None if discovery is disabled."""
        self._access.discovery = self.discovery
        self._udp: UdpSocket | None = None
        self._host = settings.host
        self._connections = OpenConnections()
        self._by_peer: dict[Peer, Connection] = {}
        self._port: int | None = None
        self._identity: Identity | None = None
        self._context: PeerContext | None = None
        self._tasks: asyncio.TaskGroup | None = None
        for enode in settings.static:
            self.plan.add_static(enode, clock.monotonic())
        self.host_names = host_names
        if host_names is not None:
            host_names.add((*settings.static, *settings.bootnodes))
            host_names.changed.listen(self._readdress)

    # --- queries and commands -----------------------------------------------------------------------------

    @property
    def is_listening(self) -> bool:
        """Whether the TCP port is open."""
        return self._port is not None

    @property
    def local_enode(self) -> Enode | None:
        """The advertised enode of this node; None before the node listens."""
        if self._port is None:
            return None
        return Enode(self._key.public_key, self.host, self._port, 0 if self.discovery is None else self._port)

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """Offered capabilities, in the order of Hello."""
        return tuple(one for subprotocol in self._subprotocols for one in subprotocol.capabilities)

    @property
    def host(self) -> str:
        """The advertised address. After a UPnP mapping, this is the address of the router."""
        return self._host

    @property
    def max_peers(self) -> int:
        return self._settings.limits.max_peers

    @property
    def waiting_bytes(self) -> int:
        """Bytes queued for all peers."""
        return self._connections.waiting_bytes

    @property
    def dialling(self) -> int:
        """Number of dial attempts in progress."""
        return len(self._dialer)

    def connecting_addresses(self, with_status: Collection[bytes]) -> list[Address]:
        """Return the addresses of nodes that are being dialled, and of peers whose status is not known yet.
        `with_status` has the node ids of all other peers.
        """
        connected = [peer.validator_address for peer in self.peers if peer.id not in with_status]
        return [*connected, *map(address_of, self._dialer.targets)]

    def add_static(self, enode: Enode) -> bool:
        """Add a static peer and dial it. Returns False if the node is a static peer already, or is this node itself."""
        is_new = self.plan.add_static(enode, self._clock.monotonic())
        if is_new:
            self._readdress(enode.host)
            self.bans.lift(enode.node_id)
            self._mark_static(enode.node_id)
            self._dialer.wake()
        return is_new

    def remove_static(self, enode: Enode) -> bool:
        """Remove a static peer and disconnect the node. If the node was not a static peer, returns False, but
        disconnects the node too.
        """
        was_static = self.plan.remove_static(enode)
        self.plan.forget(enode.node_id)
        self._access.forget(enode.node_id)
        if self.discovery is not None:
            self.discovery.forget(enode.node_id)
        self._mark_static(enode.node_id)
        peer = self.peers.by_id(enode.node_id)
        if peer is not None:
            peer.disconnect(DisconnectReason.REQUESTED, "removed by the operator")
        return was_static

    def recheck(self) -> None:
        """Disconnect the peers that the permission rules no longer permit, and remove such nodes from discovery."""
        for peer in self.peers:
            action = Action.KEEP_INBOUND if peer.is_inbound else Action.KEEP_OUTBOUND
            refusal = self._rules.refusal_of(peer.enode, action)
            if refusal is not None:
                log.info("peer no longer permitted enode=%s reason=%s", peer.enode, refusal)
                peer.disconnect(DisconnectReason.REQUESTED, refusal)
        if self.discovery is not None:
            self.discovery.recheck()

    def offer(self, enode: Enode) -> None:
        """Accept a live node from discovery for dialling, if this node may dial it."""
        if self._access.may_dial(enode):
            self.plan.offer(enode, self._clock.monotonic())
            self._dialer.wake()

    def _readdress(self, name: str) -> None:
        """Update static peers and bootnodes after the address of a host name has changed."""
        if self.host_names is None or not name:
            return
        self.plan.readdress(self.host_names.resolve, self._clock.monotonic())
        if self.discovery is not None:
            self.discovery.set_bootnodes([self.host_names.resolve(one) for one in self._settings.bootnodes])
        self._dialer.wake()

    # --- main task ---------------------------------------------------------------------------------

    async def run(self, ready: Callable[[], None]) -> None:
        """Listen and dial until cancelled."""
        loop = asyncio.get_running_loop()
        context = PeerContext(
            loop,
            self._clock,
            ReceiveScheduler(loop, self._clock),
            self.traffic,
            self,
            self._subprotocols,
            self._settings.timing,
            has_own_quota=self._access.has_own_quota,
        )
        self._context = context
        server, self._udp = await open_ports(
            self._settings, context, self._inbound, self.discovery, self._access.is_known_address
        )
        port = server.port
        self._set_port(port)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                background = [tasks.create_task(self._dialer.run(tasks), name="dialler")]
                if self.discovery is not None:
                    # start discovery after the listener, because other nodes connect as soon as they discover this node
                    background.append(tasks.create_task(self.discovery.run(), name="discovery"))
                mapping = PortMapping(self._settings.interface, port)
                if self._settings.asks_router:
                    background.append(tasks.create_task(self._map_port(mapping, port), name="router"))
                if self.host_names is not None:
                    background.append(tasks.create_task(self.host_names.run(), name="host names"))
                ready()
                try:
                    await loop.create_future()
                finally:
                    server.close()
                    self._inbound.close()
                    for task in background:
                        task.cancel()
                    self._port = None
                    await asyncio.gather(self._connections.disconnect_all(), mapping.release())
        finally:
            self._tasks = None
            if self._udp is not None:
                self._udp.close()

    def _set_port(self, port: int) -> None:
        """Set the listening port in the permission rules, the node record and Hello."""
        settings, self._port = self._settings, port
        self._rules.local = Enode(self._key.public_key, settings.host, port, port)
        if self.discovery is not None:
            self.discovery.settle(port, port)
        hello = Hello.of(settings.client_id, self.capabilities, port, self._key.public_key)
        self._identity = Identity(self._key, hello, self.capabilities)
        log.info("%s started and listening on %s:%d", self.name, settings.interface, port)
        if settings.static:
            log.info("Connecting to %d static nodes.", len(settings.static))

    def _discovery(self, chain: EthEntry, random: Random) -> Discovery:
        settings = self._settings
        record = LocalRecord(self._key, self._clock, settings.record_file)
        context = DiscoveryContext(
            send=lambda data, address: None if self._udp is None else self._udp.send(data, address),
            offer=self.offer,
            wants_more=lambda: self._dialer.capacity > 0,
            may=self._access.may_discover,
            is_reserved=self.plan.has_reserved_slot,
            chain=chain,
        )
        return Discovery(self._key, settings.host, record, settings.bootnodes, self._clock, random, context)

    async def _map_port(self, mapping: PortMapping, port: int) -> None:
        """Map the port on the router and advertise the external address. Does nothing without a router."""
        external = await mapping.ask()
        if external is not None:
            self._host = external
            # use the external address, because the permissioning contract lists this node at that address
            self._rules.local = Enode(self._key.public_key, external, port, port)
            self._rules.changed.publish(None)
            if self.discovery is not None:
                self.discovery.settle(port, port, external)
            log.info("Enode URL %s", self.local_enode)

    # --- inbound connections ---------------------------------------------------------------------------

    def _receive(self, accepted: socket.socket, received: bytes) -> Connection | None:
        """Create the connection of an accepted socket and start its task. Returns None if the service does not run."""
        if self._tasks is None or self._port is None or self._context is None or self._identity is None:
            return None
        connection = Connection(self._context, Session(self._identity, self._entropy))
        self._tasks.create_task(self._take_over(connection, accepted, received))
        return connection

    async def _take_over(self, connection: Connection, accepted: socket.socket, received: bytes) -> None:
        assert self._context is not None
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._context.loop.connect_accepted_socket(lambda: connection, accepted)
        except OSError:
            self.pending.leave(connection)  # the remote node has already closed the connection
            accepted.close()
            return
        if received:
            connection.data_received(received)
        await self._connections.run(connection)

    # --- outbound connections --------------------------------------------------------------------------

    async def _connect(self, enode: Enode) -> bool:
        """Dial a node and run the connection. Returns False if no connection was established."""
        assert self._context is not None
        assert self._identity is not None
        try:
            connection = Connection(self._context, Session(self._identity, self._entropy, enode.node_id))
            async with asyncio.timeout(self._settings.timing.connect):
                await self._context.loop.create_connection(lambda: connection, enode.ip, enode.tcp_port)
            await self._connections.run(connection)
        except (OSError, TimeoutError, WireError) as error:
            log.debug("cannot connect enode=%s reason=%s", enode, str(error) or type(error).__name__)
            if self.host_names is not None:
                self.host_names.failed(enode.host)
            return False
        return True

    # --- ConnectionManager (called by connections) -----------------------------------------------------

    def judge(self, peer: Peer) -> None:
        """Check permissions, bans and limits after Hello. Raises `PeerMisbehaved`, or ends an older connection to the
        node.
        """
        peer.enode = self._access.listener_of(peer)
        refusal = self._rules.refusal_of(peer.enode, Action.ACCEPT if peer.is_inbound else Action.DIAL)
        if refusal is not None:
            log.info("peer refused enode=%s reason=%s", peer.enode, refusal)
            if peer.is_inbound:
                self._inbound.flood_guard.refused(peer.enode.ip, peer.id, self._clock.monotonic())
            raise PeerMisbehaved(DisconnectReason.REQUESTED, refusal)
        peer.is_static = self.plan.is_static(peer.id)
        peer.is_permitted = self._rules.names(peer.id)
        present = self.peers.by_id(peer.id)
        try:
            replaced = self._admission.judge(peer, self._clock.monotonic())
        except OphionError:
            if present is not None:
                # the remote node connects again, so the existing connection may be dead: probe it
                self._by_peer[present].probe()
            raise
        if replaced is not None:
            connection = self._by_peer[replaced]
            connection.disconnect(DisconnectReason.ALREADY_CONNECTED, "replaced by another connection with this node")
            connection.finish()

    def joined(self, connection: Connection, peer: Peer) -> None:
        """Add an accepted peer to the table of peers."""
        self.pending.leave(connection)
        self._inbound.flood_guard.accepted(peer.id)
        self._by_peer[peer] = connection
        self.peers.add(peer)
        self._dialer.arrived(peer.id)

    def left(self, connection: Connection, ending: ConnectionEnd) -> None:
        """Remove an ended connection, ban the node after a breach, and plan the next dial."""
        self.pending.leave(connection)
        self._connections.track_leaving(connection, is_bounded=self.is_listening)
        peer, node_id, now = connection.peer, connection.remote_id, self._clock.monotonic()
        if peer is not None:
            self._by_peer.pop(peer, None)
            self.peers.remove(peer, ending.reason, ending.by_us)
        if node_id is not None and (peer is not None or not connection.is_inbound):
            if ending.by_us and ending.reason is DisconnectReason.BREACH and not self.plan.is_static(node_id):
                self.bans.bar(node_id, now)
            self.plan.ended(node_id, now, outcome_of(ending, connection.lived))
        self._dialer.wake()

    def _mark_static(self, node_id: bytes) -> None:
        peer = self.peers.by_id(node_id)
        if peer is not None:
            peer.is_static = self.plan.is_static(node_id)
