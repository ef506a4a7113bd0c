"""`PeerService`: the room at work. Listens, looks for others, dials, keeps who is connected.

One task tree: the service, under it one task for each connection (inbound ones from the accepted socket on, outbound
ones from the attempt on) and one that dials. Stopping tells every peer that this client quits, and takes two seconds at
most.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct, field

from ophion.errors import OphionError
from ophion.native.crypto import PrivateKey, address_of
from ophion.native.wire import WireError
from ophion.peers.connection.connection import Connection, Ending, PeerContext
from ophion.peers.connection.listener import Listener
from ophion.peers.connection.pre_handshake import PreHandshake
from ophion.peers.connection.receive_scheduler import ReceiveScheduler
from ophion.peers.connection.timeouts import Timing
from ophion.peers.connection.traffic import Traffic
from ophion.peers.dialer import Dialer
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.discovery.discovery import ChainMark, Discovery, DiscoveryContext
from ophion.peers.discovery.record import LocalRecord
from ophion.peers.discovery.udp import UdpSocket
from ophion.peers.inbound import InboundConnections
from ophion.peers.peer import Peer
from ophion.peers.peer_table import Peers
from ophion.peers.policy.addresses import Subnet, is_within
from ophion.peers.policy.admission import Admission, PeerLimits
from ophion.peers.policy.bans import Bans
from ophion.peers.policy.dial_plan import BRIEF_S, LASTING_S, DialPlan, Outcome
from ophion.peers.policy.pending_limit import PendingLimit
from ophion.peers.port_mapping import PortMapping
from ophion.peers.rlpx.capability import Capability
from ophion.peers.rlpx.hello import Hello
from ophion.peers.rlpx.session import Identity, Session
from ophion.peers.subprotocol import Subprotocol
from ophion.peers.token_bucket import TokenBucket
from ophion.permissions.node_rules import Action, NodeRules
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.port_in_use import is_taken, taken

log = logging.getLogger(__name__)

_FAREWELL_S: Final = 2.0
_BROKEN: Final = (DisconnectReason.TCP_ERROR, DisconnectReason.CLIENT_QUITTING, DisconnectReason.TIMEOUT)
"""Ends that say nothing about whether two nodes suit each other."""
_MAX_LEAVING: Final = 128
"""Connections that have ended and wait for the other side to close: each is an open file."""
_ASKING_S: Final = 0.2
_ASKING_PER_S: Final = 0.05
"""What rules may take of each second of the event loop to judge strangers that ping: a contract may be slow."""
_CATCH_UP: Final = (
    "; the contract is asked after the newest block of this node. If it has to catch up first, name permitted nodes"
    " with --bootnodes: connections with them are permitted until then"
)
_FREE_PORTS: Final = 10
"""Ports to try where any will do."""


class PeerListenError(OphionError):
    """The port for peers cannot be opened."""


class PeerSettings(Struct, frozen=True):
    """How this node meets others."""

    host: str = "127.0.0.1"
    """The address others are told."""
    interface: str = "127.0.0.1"
    """The address to listen on."""
    port: int = 0
    limits: PeerLimits = field(default_factory=PeerLimits)
    static: tuple[Enode, ...] = ()
    banned: frozenset[bytes] = frozenset()
    subnets: tuple[Subnet, ...] = ()
    client_id: str = "ophion"
    has_discovery: bool = False
    bootnodes: tuple[Enode, ...] = ()
    asks_router: bool = False
    """Whether the router in front of this node is asked to let peers in."""
    record_file: Path | None = None
    """Where this node's record is kept; None: nowhere."""
    timing: Timing = field(default_factory=Timing)


class PeerService:
    """Connections with other nodes, for as long as it runs."""

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
        chain: ChainMark | None = None,
        is_member: Callable[[Address], bool] = lambda address: False,
    ) -> None:
        """`rules` say which nodes are permitted; None: all. `is_member`: whether a node makes blocks of the chain."""
        self._settings = settings
        self._key = key
        self._subprotocols = tuple(subprotocols)
        self._clock = clock
        self._entropy = entropy
        self.peers = Peers() if peers is None else peers
        self.traffic = Traffic()
        self.bans = Bans()
        # jitter, and which way to look: nothing that must not be guessed
        random = Random(entropy.token(16))
        self.plan = DialPlan(key.public_key, random, lambda node_id: is_member(address_of(node_id)))
        self.doorway: PendingLimit[Connection | PreHandshake] = PendingLimit(settings.subnets)
        self._reception = InboundConnections(
            key,
            clock,
            self.doorway,
            settings.timing.handshake,
            self.plan.is_static_address,
            self._is_expected,
            self._receive,
        )
        self._admission = Admission(
            key.public_key, self.peers, settings.limits, self.bans, self.plan.has_place, settings.banned
        )
        self._dialler = Dialer(self.plan, self.peers, settings.limits.max_peers, clock, self._may_dial, self._connect)
        self._rules = rules or NodeRules(key.public_key)
        self._asking = TokenBucket(_ASKING_S, _ASKING_PER_S)
        self._rules.peer_ids = lambda: (peer.id for peer in self.peers)
        self._rules.changed.listen(lambda _: self.recheck())
        self._rules.changed.listen(lambda _: self._reception.crowd.reconsider())
        self.discovery = self._discovery(chain or ChainMark(), random) if settings.has_discovery else None
        """How nodes find each other; None where only known ones meet."""
        self._udp: UdpSocket | None = None
        self._host = settings.host
        self._connections: set[Connection] = set()
        self._leaving: dict[Connection, None] = {}
        self._undialled: set[bytes] = set()
        """Static peers that the rules do not permit to dial, which has been said."""
        self._by_peer: dict[Peer, Connection] = {}
        self._has_left = asyncio.Event()
        self._port: int | None = None
        self._identity: Identity | None = None
        self._context: PeerContext | None = None
        self._tasks: asyncio.TaskGroup | None = None
        for enode in settings.static:
            self.plan.add_static(enode, clock.monotonic())

    # --- what others ask -----------------------------------------------------------------------------

    @property
    def is_listening(self) -> bool:
        """Whether others can connect to this node."""
        return self._port is not None

    @property
    def local_enode(self) -> Enode | None:
        """Where others find this node; None before it listens."""
        if self._port is None:
            return None
        return Enode(self._key.public_key, self.host, self._port, 0 if self.discovery is None else self._port)

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """What this node offers, in the order of Hello."""
        return tuple(one for subprotocol in self._subprotocols for one in subprotocol.capabilities)

    @property
    def host(self) -> str:
        """The address others are told; that of the router, where it lets peers in."""
        return self._host

    @property
    def max_peers(self) -> int:
        return self._settings.limits.max_peers

    @property
    def waiting_bytes(self) -> int:
        """What is queued for all peers together."""
        return sum(connection.waiting_bytes for connection in self._connections)

    @property
    def dialling(self) -> int:
        """Attempts under way."""
        return len(self._dialler)

    def add_static(self, enode: Enode) -> bool:
        """Keep a connection with this node from now on; False where that is so already, or it is ourselves."""
        is_new = self.plan.add_static(enode, self._clock.monotonic())
        if is_new:
            self.bans.lift(enode.node_id)
            self._mark_static(enode.node_id)
            self._dialler.wake()
        return is_new

    def remove_static(self, enode: Enode) -> bool:
        """Stop keeping it, and end the connection; False where it was not kept (the connection ends all the same)."""
        was_static = self.plan.remove_static(enode)
        self.plan.forget(enode.node_id)
        self._undialled.discard(enode.node_id)
        if self.discovery is not None:
            self.discovery.forget(enode.node_id)
        self._mark_static(enode.node_id)
        peer = self.peers.by_id(enode.node_id)
        if peer is not None:
            peer.disconnect(DisconnectReason.REQUESTED, "removed by the operator")
        return was_static

    def recheck(self) -> None:
        """End every connection that the rules permit no longer."""
        for peer in self.peers:
            action = Action.KEEP_INBOUND if peer.is_inbound else Action.KEEP_OUTBOUND
            refusal = self._rules.refusal_of(peer.enode, action)
            if refusal is not None:
                log.info("peer no longer permitted enode=%s reason=%s", peer.enode, refusal)
                peer.disconnect(DisconnectReason.REQUESTED, refusal)
        if self.discovery is not None:
            self.discovery.recheck()

    def offer(self, enode: Enode) -> None:
        """Discovery has seen this node alive."""
        if self._may_dial(enode):
            self.plan.offer(enode, self._clock.monotonic())
            self._dialler.wake()

    # --- the task --------------------------------------------------------------------------------------

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
            has_place=self._has_own_share,
        )
        self._context = context
        server = await self._open_ports(context)
        port = server.port
        self._introduce(port)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                seekers = [tasks.create_task(self._dialler.run(tasks), name="dialler")]
                if self.discovery is not None:
                    # after the listener: others connect as soon as they hear of us
                    seekers.append(tasks.create_task(self.discovery.run(), name="discovery"))
                mapping = PortMapping(self._settings.interface, port)
                if self._settings.asks_router:
                    seekers.append(tasks.create_task(self._ask_router(mapping, port), name="router"))
                ready()
                try:
                    await loop.create_future()
                finally:
                    server.close()
                    self._reception.close()
                    for seeker in seekers:
                        seeker.cancel()
                    self._port = None
                    await asyncio.gather(self._say_goodbye(), mapping.release())
        finally:
            self._tasks = None
            if self._udp is not None:
                self._udp.close()

    async def _open_ports(self, context: PeerContext) -> Listener:
        settings = self._settings
        attempts = _FREE_PORTS if settings.port == 0 else 1
        while True:
            attempts -= 1
            try:
                return await self._listen(context)
            except OSError as error:
                # a port that is free for TCP may be taken for UDP
                if not attempts:
                    raise _listen_error(settings.interface, settings.port, error) from None

    def _introduce(self, port: int) -> None:
        """This port is ours: everything that tells others of this node knows it from here on."""
        settings = self._settings
        self._port = port
        self._rules.local = Enode(self._key.public_key, settings.host, port, port)
        if self.discovery is not None:
            self.discovery.settle(port, port)
        hello = Hello.of(settings.client_id, self.capabilities, port, self._key.public_key)
        self._identity = Identity(self._key, hello, self.capabilities)
        log.info("%s started and listening on %s:%d", self.name, settings.interface, port)
        if settings.static:
            log.info("Connecting to %d static nodes.", len(settings.static))

    async def _listen(self, context: PeerContext) -> Listener:
        settings, loop = self._settings, context.loop
        server = Listener(settings.interface, settings.port, self._reception.arrived, self._reception.is_crowded)
        if self.discovery is None:
            return server
        udp = self._udp = UdpSocket(context.scheduler, self._clock, self.discovery.received)
        try:
            await loop.create_datagram_endpoint(lambda: udp, local_addr=(settings.interface, server.port))
        except OSError:
            server.close()
            raise
        return server

    def _discovery(self, chain: ChainMark, random: Random) -> Discovery:
        settings = self._settings
        record = LocalRecord(self._key, self._clock, settings.record_file)
        context = DiscoveryContext(
            send=lambda data, address: None if self._udp is None else self._udp.send(data, address),
            offer=self.offer,
            wants_more=lambda: self._dialler.room > 0,
            may=self._may_discover,
            chain=chain,
        )
        return Discovery(self._key, settings.host, record, settings.bootnodes, self._clock, random, context)

    def _may_discover(self, enode: Enode, action: Action) -> bool:
        settings = self._settings
        if not is_within(enode.ip, settings.subnets) or enode.node_id in settings.banned:
            return False
        if action is not Action.ACCEPT_PING or self._is_expected(enode.node_id):
            return self._rules.refusal_of(enode, action) is None
        began = self._clock.monotonic()
        if self._asking.left(began) <= 0:
            return False
        refusal = self._rules.refusal_of(enode, action)
        ended = self._clock.monotonic()
        self._asking.spend(ended - began, ended)
        return refusal is None

    async def _say_goodbye(self) -> None:
        """Tell everybody; give them a moment to close. What is left is closed without a word."""
        for connection in tuple(self._connections):
            connection.disconnect(DisconnectReason.CLIENT_QUITTING, "this node stops")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                while self._connections:
                    self._has_left.clear()
                    await self._has_left.wait()

    async def _ask_router(self, mapping: PortMapping, port: int) -> None:
        """Have the router send peers here; without one the node goes on as it is."""
        external = await mapping.ask()
        if external is not None:
            self._host = external
            # rules on the chain are asked about this node as others know it
            self._rules.local = Enode(self._key.public_key, external, port, port)
            self._rules.changed.publish(None)
            if self.discovery is not None:
                self.discovery.settle(port, port, external)
            log.info("Enode URL %s", self.local_enode)

    # --- inbound ---------------------------------------------------------------------------------------

    def _receive(self, taken: socket.socket, said: bytes) -> Connection | None:
        """Make a connection of a socket that came; its task begins then."""
        if self._tasks is None or self._port is None or self._context is None or self._identity is None:
            return None
        connection = Connection(self._context, Session(self._identity, self._entropy))
        self._tasks.create_task(self._take_over(connection, taken, said))
        return connection

    async def _take_over(self, connection: Connection, taken: socket.socket, said: bytes) -> None:
        assert self._context is not None
        try:
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._context.loop.connect_accepted_socket(lambda: connection, taken)
        except OSError:
            self.doorway.leave(connection)  # it is gone again
            taken.close()
            return
        if said:
            connection.data_received(said)
        await self._live(connection)

    def _has_own_share(self, node_id: bytes) -> bool:
        """Whether a node has capacity that unknown peers cannot use: it is static, makes blocks or is permitted."""
        return self.plan.has_place(node_id) or self._rules.names(node_id)

    def _is_expected(self, node_id: bytes) -> bool:
        """Whether a node by this name is known that is permitted, as far as can be told before it has said its port."""
        return (
            self.plan.has_place(node_id)
            or self.peers.by_id(node_id) is not None
            or self._rules.names(node_id)
            or (self.discovery is not None and self.discovery.buckets.get(node_id) is not None)
        )

    async def _live(self, connection: Connection) -> None:
        """A connection from an open socket to a closed one."""
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            self._leaving.pop(connection, None)
            self._has_left.set()

    # --- outbound --------------------------------------------------------------------------------------

    async def _connect(self, enode: Enode) -> bool:
        """One attempt, and the connection that comes of it; False where none does."""
        assert self._context is not None
        assert self._identity is not None
        try:
            connection = Connection(self._context, Session(self._identity, self._entropy, enode.node_id))
            async with asyncio.timeout(self._settings.timing.connect):
                await self._context.loop.create_connection(lambda: connection, enode.ip, enode.tcp_port)
            await self._live(connection)
        except (OSError, TimeoutError, WireError) as error:
            log.debug("cannot connect enode=%s reason=%s", enode, str(error) or type(error).__name__)
            return False
        return True

    def _may_dial(self, enode: Enode) -> bool:
        now = self._clock.monotonic()
        if not is_within(enode.ip, self._settings.subnets) or self._admission.is_banned(enode.node_id, now):
            return False
        refusal = self._rules.refusal_of(enode, Action.DIAL)
        if refusal is None:
            self._undialled.discard(enode.node_id)
        elif self.plan.is_static(enode.node_id) and enode.node_id not in self._undialled:
            # somebody waits for this connection: said once, until it may be made
            self._undialled.add(enode.node_id)
            hint = _CATCH_UP if self._rules.contract is not None and not self._rules.has_bootnodes else ""
            log.warning("static node not dialled enode=%s reason=%s%s", enode, refusal, hint)
        else:
            log.debug("not dialled enode=%s reason=%s", enode, refusal)
        return refusal is None

    # --- Keeper ----------------------------------------------------------------------------------------

    def judge(self, peer: Peer) -> None:
        """Whether somebody who has said Hello may stay."""
        peer.enode = self._listener_of(peer)
        refusal = self._rules.refusal_of(peer.enode, Action.ACCEPT if peer.is_inbound else Action.DIAL)
        if refusal is not None:
            log.info("peer refused enode=%s reason=%s", peer.enode, refusal)
            if peer.is_inbound:
                self._reception.crowd.refused(peer.enode.ip, peer.id, self._clock.monotonic())
            raise PeerMisbehaved(DisconnectReason.REQUESTED, refusal)
        peer.is_static = self.plan.is_static(peer.id)
        peer.is_permitted = self._rules.names(peer.id)
        present = self.peers.by_id(peer.id)
        try:
            replaced = self._admission.judge(peer, self._clock.monotonic())
        except OphionError:
            if present is not None:
                # it may be dead without our knowing, and the newcomer tries to tell us
                self._by_peer[present].probe()
            raise
        if replaced is not None:
            connection = self._by_peer[replaced]
            connection.disconnect(DisconnectReason.ALREADY_CONNECTED, "another connection with this node stays")
            connection.finish_now()

    def _listener_of(self, peer: Peer) -> Enode:
        """Where a peer listens: some clients do not say so in Hello, but it may be known otherwise."""
        if peer.enode.tcp_port:
            return peer.enode
        found = None if self.discovery is None else self.discovery.buckets.get(peer.id)
        known = (*self.plan.statics, *(() if found is None else (found,)))
        same = (one for one in known if (one.node_id, one.ip) == (peer.id, peer.enode.ip))
        return next(same, peer.enode)

    def joined(self, connection: Connection, peer: Peer) -> None:
        """Somebody has become a peer."""
        self.doorway.leave(connection)
        self._reception.crowd.accepted(peer.id)
        self._by_peer[peer] = connection
        self.peers.add(peer)
        self._dialler.arrived(peer.id)

    def left(self, connection: Connection, ending: Ending) -> None:
        """A connection is over."""
        self.doorway.leave(connection)
        self._hurry(connection)
        peer, node_id, now = connection.peer, connection.remote_id, self._clock.monotonic()
        if peer is not None:
            self._by_peer.pop(peer, None)
            self.peers.remove(peer, ending.reason, ending.by_us)
        if node_id is not None and (peer is not None or not connection.is_inbound):
            if ending.by_us and ending.reason is DisconnectReason.BREACH and not self.plan.is_static(node_id):
                self.bans.bar(node_id, now)
            self.plan.ended(node_id, now, _outcome(ending, connection.lived))
        self._dialler.wake()

    def _hurry(self, leaving: Connection) -> None:
        """Whoever does not close after it was told why is waited for, unless too many do that."""
        self._leaving[leaving] = None
        if len(self._leaving) > _MAX_LEAVING and self.is_listening:
            oldest = next(iter(self._leaving))
            del self._leaving[oldest]
            oldest.abort()

    def _mark_static(self, node_id: bytes) -> None:
        peer = self.peers.by_id(node_id)
        if peer is not None:
            peer.is_static = self.plan.is_static(node_id)


def _outcome(ending: Ending, lived: float) -> Outcome:
    if ending.reason is DisconnectReason.ALREADY_CONNECTED:
        return Outcome.DUPLICATE
    if ending.reason is DisconnectReason.TOO_MANY_PEERS:
        return Outcome.FULL
    has_worked = lived >= (BRIEF_S if ending.reason in _BROKEN else LASTING_S)
    return Outcome.LOST if has_worked else Outcome.FAILED


def _listen_error(interface: str, port: int, error: OSError) -> PeerListenError:
    if error.errno == errno.EADDRNOTAVAIL:
        return PeerListenError(f"The provided --p2p-interface is not available: {interface}")
    reason = taken("--p2p-port") if is_taken(error) else error.strerror or str(error)
    return PeerListenError(f"P2P service cannot listen on {interface}:{port}: {reason}")
