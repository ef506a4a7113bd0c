"""`Discovery`: which packets are answered, what is asked, and which nodes are offered to be dialled.

It knows no socket: packets come in through `received` and leave through `send`. Every question has a time limit and
belongs to one node at one address; what nobody asked for changes nothing.
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
from ophion.peers.discovery.buckets import BUCKET_SIZE, Buckets, place_of
from ophion.peers.discovery.endpoint_proofs import EndpointProofs
from ophion.peers.discovery.lookup import Lookup
from ophion.peers.discovery.neighbor_filter import is_believable
from ophion.peers.discovery.packets import (
    Endpoint,
    FindNode,
    Kind,
    Neighbor,
    Neighbors,
    Packet,
    Ping,
    Pong,
    RecordRequest,
    RecordResponse,
    decode,
    encode,
)
from ophion.peers.discovery.record import LocalRecord, Record
from ophion.peers.policy.pending_limit import PendingLimit
from ophion.permissions.node_rules import Action
from ophion.primitives import rlp
from ophion.primitives.enode import NODE_ID_LENGTH, Enode
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

_MAX_RECEIVED: Final = 1600
_EXPIRY_S: Final = 60
_LATEST: Final = 2**63 - 1
_ANSWER_S: Final = 0.8
_BELIEF_S: Final = 0.5
"""How long another node gets to ping us, so that it believes us, before it is asked something."""
_PER_PACKET: Final = 12
_MAX_OPEN: Final = 256
"""Questions of our own at a time."""
_MAX_RETURNED: Final = 128
"""Pings at a time to those who pinged first: they must not take the place of what this node asks for itself."""
_MAX_LEARNING: Final = 16
_MAX_SUITABLE: Final = 1024
_PATIENCE: Final = 5
"""Questions a node may leave unanswered in a row."""
_FIRST_WAITS: Final = (2.0, 5.0, 10.0)
_HUNGRY_S: Final = 30.0
_CONTENT_S: Final = 1800.0
_CHECK_S: Final = (5.0, 10.0)

Address = tuple[str, int]
_Key = tuple[bytes, str, Kind]
"""Who was asked, at which address, and what is to be the answer: others may name a node where it is not."""


class ChainMark(Struct, frozen=True):
    """How nodes of the same chain know each other before they connect: the entry `eth` of node records."""

    entry: Callable[[], bytes | None] = lambda: None
    """RLP of our own entry."""
    is_ours: Callable[[rlp.Item], bool] = lambda fork_id: True
    """Whether a fork identifier in another node's record can be of our chain."""


class DiscoveryContext(Struct, frozen=True):
    """What discovery needs of the rest of the node."""

    send: Callable[[bytes, Address], None]
    offer: Callable[[Enode], None]
    """A node that is alive and, as far as one can tell, of our chain."""
    wants_more: Callable[[], bool]
    """Whether more peers would be welcome."""
    may: Callable[[Enode, Action], bool] = lambda enode, action: True
    """Whether something may be done with a node: subnets, banned ids, permissions."""
    chain: ChainMark = field(default_factory=ChainMark)


class _Question(Struct):
    """Something asked of a node."""

    enode: Enode
    hash: bytes
    answer: asyncio.Future[bool]
    timer: asyncio.TimerHandle
    found: list[Enode] = field(default_factory=list)
    record: Record | None = None


class Discovery:
    """One node's part in discovery."""

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
        self._bootnodes = tuple(one for one in bootnodes if one.node_id != self._own_id)
        self._clock = clock
        self._random = random
        self._context = context
        self._bonds = EndpointProofs()
        self._open: dict[_Key, _Question] = {}
        self._returned: PendingLimit[_Key] = PendingLimit(max_pending=_MAX_RETURNED)
        """Those of the open questions that others have brought about."""
        self._failures: Counter[bytes] = Counter()
        self._suitable: dict[bytes, Enode] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._learning: set[bytes] = set()
        self.record = record
        self.buckets = Buckets(self._own_id)
        self.received_count: Counter[str] = Counter()
        """Packets by kind; `bad` were not understood or had expired."""
        self.sent_count: Counter[str] = Counter()
        self.asked_count: Counter[str] = Counter()
        """Questions by kind."""
        self.repeated_count: Counter[str] = Counter()
        """Those of a node that has left the last one of this kind without an answer."""
        self._silent: dict[_Key, None] = {}
        """Who has left what without an answer: those of late."""

    @property
    def open_questions(self) -> int:
        return len(self._open)

    def settle(self, tcp_port: int, udp_port: int, host: str | None = None) -> None:
        """Where this node is to be found from now on."""
        self._tcp_port, self._udp_port = tcp_port, udp_port
        self._host = host or self._host
        self._update_record()

    def forget(self, node_id: bytes) -> None:
        """An operator removed this peer; it may come back when it is seen again."""
        self.buckets.remove(node_id)
        self._suitable.pop(node_id, None)
        self._failures.pop(node_id, None)

    # --- the task ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look for nodes and check those that are known, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self._check_forever())
                await self._look_forever()
        finally:
            self._tasks = None
            for key, question in tuple(self._open.items()):
                question.timer.cancel()
                question.answer.cancel()
                self._returned.leave(key)
            self._open.clear()

    async def _look_forever(self) -> None:
        for wait in chain(_FIRST_WAITS, repeat(None)):
            self._update_record()
            # whether or not they have proven something once: they may have been away
            absent = [node for node in self._bootnodes if self.buckets.get(node.node_id) is None]
            await asyncio.gather(*(self.ping(node) for node in absent))
            await self.lookup(self._own_id)
            if wait is None:
                # some other direction as well
                await self.lookup(self._random.randbytes(NODE_ID_LENGTH))
            is_hungry = self._context.wants_more()
            await asyncio.sleep(wait if wait is not None else _HUNGRY_S if is_hungry else _CONTENT_S)

    async def _check_forever(self) -> None:
        """Now and then see whether a node that was not heard of for long is still there."""
        while True:
            await asyncio.sleep(self._random.uniform(*_CHECK_S))
            enode = self.buckets.any(self._random)
            if enode is not None and not await self.ping(enode) and not await self.ping(enode):
                self.forget(enode.node_id)

    # --- asking --------------------------------------------------------------------------------------

    async def ping(self, enode: Enode) -> bool:
        """Whether a node answers."""
        question = self._ask_for_pong(enode)
        if question is None:
            return False
        # whoever asked first, it is ours from now on
        self._returned.leave((enode.node_id, enode.ip, Kind.PONG))
        return await asyncio.shield(question.answer)

    def recheck(self) -> None:
        """What is permitted may have changed: drop who may not be kept.

        Whoever comes back must prove itself anew, so proofs are forgotten then; not otherwise, because rules on the
        chain are looked at again after every block.
        """
        dropped = [enode for enode in self.buckets if not self._context.may(enode, Action.KEEP_IN_TABLE)]
        for enode in dropped:
            self.forget(enode.node_id)
        if dropped:
            self._bonds = EndpointProofs()

    async def lookup(self, target: bytes) -> list[Enode]:
        """The nodes nearest to a key, as far as those who answer know."""
        walk = Lookup(target, self._own_id, self.buckets.closest(place_of(target)))
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                running |= {asyncio.create_task(self._ask_on(walk, enode)) for enode in walk.questions()}
                if not running:
                    return walk.nearest
                _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in running:
                task.cancel()

    async def find(self, enode: Enode, target: bytes) -> list[Enode] | None:
        """Whom a node knows near a key; None where it does not answer."""
        if not await self._meet(enode):
            return None
        if not self._context.may(enode, Action.SEND_FIND_NODE):
            return None
        question = self._ask(enode, FindNode(target, self._expiry()), Kind.NEIGHBORS)
        if question is None:
            return None
        has_answered = await asyncio.shield(question.answer) or bool(question.found)
        return question.found if has_answered else None

    async def request_record(self, enode: Enode) -> Record | None:
        """What a node says about itself; None where it does not answer, as clients of long ago do not."""
        if not await self._meet(enode):
            return None
        question = self._ask(enode, RecordRequest(self._expiry()), Kind.RECORD_RESPONSE)
        if question is None or not await asyncio.shield(question.answer):
            return None
        return question.record

    async def _ask_on(self, walk: Lookup, enode: Enode) -> None:
        found = await self.find(enode, walk.target)
        if found is not None:
            self._failures.pop(enode.node_id, None)
            walk.answered(enode.node_id, found)
            return
        walk.failed(enode.node_id)
        known = self.buckets.get(enode.node_id)
        # somebody may have named it where it is not
        if known is not None and (known.ip, known.udp_port) == (enode.ip, enode.udp_port):
            self._failures[enode.node_id] += 1
            if self._failures[enode.node_id] >= _PATIENCE:
                self.forget(enode.node_id)

    async def _meet(self, enode: Enode) -> bool:
        """Make sure that each side believes the other's address."""
        if not self._is_proven(enode) and not await self.ping(enode):
            return False
        if not self._bonds.believes_us(enode.node_id, enode.ip, self._clock.monotonic()):
            await asyncio.sleep(_BELIEF_S)
        return True

    def _is_proven(self, enode: Enode) -> bool:
        return self._proven(enode.node_id, enode.ip) is not None

    def _proven(self, node_id: bytes, ip: str) -> Enode | None:
        """The node that has proven to live there. Proofs are many and forgotten; the table has those that are kept."""
        known = self._bonds.proven(node_id, ip, self._clock.monotonic()) or self.buckets.get(node_id)
        return known if known is not None and known.ip == ip else None

    def _ask_for_pong(self, enode: Enode) -> _Question | None:
        if not self._context.may(enode, Action.SEND_PING):
            return None
        sender = Endpoint(self._host, self._udp_port, self._tcp_port)
        ping = Ping(sender, Endpoint(enode.ip, enode.udp_port, 0), self._expiry(), self.record.seq)
        return self._ask(enode, ping, Kind.PONG)

    def _ask(self, enode: Enode, packet: Packet, answer: Kind) -> _Question | None:
        """One question of a kind to a node at a time; the one that is open is as good as another."""
        key = (enode.node_id, enode.ip, answer)
        if (known := self._open.get(key)) is not None:
            return known
        if len(self._open) - len(self._returned) >= _MAX_OPEN:
            return None
        loop = asyncio.get_running_loop()
        timer = loop.call_later(_ANSWER_S, self._close, key, False)
        question = self._open[key] = _Question(enode, b"", loop.create_future(), timer)
        kind, question.hash = self._send(packet, (enode.ip, enode.udp_port))
        self.asked_count[kind] += 1
        self.repeated_count[kind] += key in self._silent
        return question

    def _close(self, key: _Key, is_answered: bool) -> None:
        question = self._open.pop(key, None)
        if question is not None:
            question.timer.cancel()
            self._returned.leave(key)
            self._silent.pop(key, None)
            if not is_answered:
                self._silent[key] = None
                if len(self._silent) > _MAX_OPEN:
                    del self._silent[next(iter(self._silent))]
            if not question.answer.done():
                question.answer.set_result(is_answered)

    def _send(self, packet: Packet, address: Address) -> tuple[str, bytes]:
        """What kind it was, and its hash."""
        kind, data = encode(packet)
        datagram = wire.seal_packet(self._key.secret(), kind, data)
        name = kind.name.lower()
        self.sent_count[name] += 1
        self._context.send(datagram, address)
        return name, datagram[:32]

    def _expiry(self) -> int:
        return int(self._clock.now()) + _EXPIRY_S

    # --- hearing -------------------------------------------------------------------------------------

    def received(self, datagram: bytes, ip: str, port: int) -> None:
        """One packet; whatever is wrong with it is dropped in silence."""
        if len(datagram) > _MAX_RECEIVED:
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
        self.received_count[Kind(kind).name.lower()] += 1
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
        """Other clients read the time as a signed number: what is beyond that is long past."""
        return expiration < self._clock.now() or expiration > _LATEST

    def _on_ping(self, ping: Ping, digest: bytes, node_id: bytes, ip: str, port: int) -> None:
        enode = Enode(node_id, ip, ping.sender.tcp_port, port)
        if not self._context.may(enode, Action.ACCEPT_PING):
            return
        receiver = Endpoint(ip, port, ping.sender.tcp_port)
        self._send(Pong(receiver, digest, self._expiry(), self.record.seq), (ip, port))
        now = self._clock.monotonic()
        self._bonds.hear(node_id, ip, now)
        if self._bonds.proven(node_id, ip, now) is None:
            self._return_ping(enode)
        elif self.buckets.get(node_id) is not None:
            self._keep(enode)

    def _return_ping(self, enode: Enode) -> None:
        """Ask a newcomer for its proof. Where too many owe one, a newcomer of the address that has most is given up."""
        key = (enode.node_id, enode.ip, Kind.PONG)
        if key in self._open or self._ask_for_pong(enode) is None:
            return
        given_up = self._returned.enter(key, enode.ip, is_known=False)
        if given_up is not None:
            self._close(given_up, False)

    def _on_pong(self, pong: Pong, node_id: bytes, ip: str) -> None:
        question = self._open.get((node_id, ip, Kind.PONG))
        if question is None or question.hash != pong.ping_hash:
            return
        enode = question.enode
        is_new = self._bonds.prove(enode, self._clock.monotonic())
        self._keep(enode)
        self._close((node_id, ip, Kind.PONG), True)
        if is_new or (node_id not in self._suitable and self._context.wants_more()):
            self._learn_about(enode)
        elif node_id in self._suitable:
            self._context.offer(self._suitable[node_id])

    def _on_find_node(self, request: FindNode, node_id: bytes, ip: str, port: int) -> None:
        asker = self._proven(node_id, ip)
        if asker is None or not self._context.may(asker, Action.ANSWER_FIND_NODE):
            return
        near = [
            Neighbor(Endpoint(enode.ip, enode.udp_port, enode.tcp_port), enode.node_id)
            for enode in self.buckets.closest(place_of(request.target), BUCKET_SIZE + 1)
            if enode.node_id != node_id and is_believable(enode.ip, enode.udp_port, ip)
        ][:BUCKET_SIZE]
        for start in range(0, max(len(near), 1), _PER_PACKET):
            self._send(Neighbors(tuple(near[start : start + _PER_PACKET]), self._expiry()), (ip, port))

    def _on_neighbors(self, packet: Neighbors, node_id: bytes, ip: str) -> None:
        question = self._open.get((node_id, ip, Kind.NEIGHBORS))
        if question is None:
            return
        for node in packet.nodes[:BUCKET_SIZE]:
            at = node.endpoint
            if is_believable(at.ip, at.udp_port, ip):
                question.found.append(Enode(node.node_id, at.ip, at.tcp_port, at.udp_port))
        if len(packet.nodes) < _PER_PACKET or len(question.found) >= BUCKET_SIZE:
            self._close((node_id, ip, Kind.NEIGHBORS), True)

    def _on_record_request(self, digest: bytes, node_id: bytes, ip: str, port: int) -> None:
        if self._proven(node_id, ip) is not None:
            self._update_record()
            self._send(RecordResponse(digest, self.record.encoded), (ip, port))

    def _on_record(self, packet: RecordResponse, node_id: bytes, ip: str) -> None:
        question = self._open.get((node_id, ip, Kind.RECORD_RESPONSE))
        if question is None or question.hash != packet.request_hash:
            return
        try:
            record = Record.read(packet.record)
        except WireError:
            return
        if record.node_id == node_id:
            question.record = record
            self._close((node_id, ip, Kind.RECORD_RESPONSE), True)

    def _keep(self, enode: Enode) -> None:
        if self._context.may(enode, Action.KEEP_IN_TABLE):
            self.buckets.add(enode)

    # --- offering ------------------------------------------------------------------------------------

    def _learn_about(self, enode: Enode) -> None:
        """Ask a node that has just proven to be there for its record, then offer it."""
        if self._tasks is None or len(self._learning) >= _MAX_LEARNING or enode.node_id in self._learning:
            return
        self._learning.add(enode.node_id)
        self._tasks.create_task(self._learn(enode))

    async def _learn(self, enode: Enode) -> None:
        try:
            # it has just been talked to: let it say first what it came for
            await asyncio.sleep(_BELIEF_S)
            record = await self.request_record(enode)
            if record is not None and record.chain is not None and not self._context.chain.is_ours(record.chain):
                log.debug("a node of another chain enode=%s", enode)
                return
            tcp_port = (None if record is None else record.tcp_port) or enode.tcp_port
            suitable = Enode(enode.node_id, enode.ip, tcp_port, enode.udp_port)
            self._suitable.pop(enode.node_id, None)
            self._suitable[enode.node_id] = suitable
            if len(self._suitable) > _MAX_SUITABLE:
                del self._suitable[next(iter(self._suitable))]
            self._context.offer(suitable)
        finally:
            self._learning.discard(enode.node_id)

    def _update_record(self) -> None:
        self.record.update(self._host, self._tcp_port, self._udp_port, self._context.chain.entry())
