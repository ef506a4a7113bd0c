"""Tests the peer service over real loopback sockets."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop
from msgspec.structs import replace

from ophion.native import wire
from ophion.native.crypto import PrivateKey, address_of
from ophion.peers.connection.connection import Connection
from ophion.peers.connection.context import ConnectionEnd
from ophion.peers.connection.timeouts import StageTimeouts
from ophion.peers.dial_outcome import outcome_of
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.peer import Peer
from ophion.peers.peer_table import PeerConnected, PeerEvent, PeerGone
from ophion.peers.policy.addresses import read_subnet
from ophion.peers.policy.admission import PeerLimits
from ophion.peers.policy.dial_plan import DialOutcome
from ophion.peers.port_mapping import PortMapping
from ophion.peers.rlpx.capability import Capability
from ophion.peers.rlpx.hello import Hello
from ophion.peers.rlpx.session import DisconnectReceived, Identity, Session
from ophion.peers.service import PeerService
from ophion.peers.settings import PeerListenError, PeerSettings
from ophion.permissions.allow_list import AllowList
from ophion.permissions.allow_list_file import RulesFile
from ophion.permissions.list_requests import NODES
from ophion.permissions.node_rules import Action, NodeRules
from ophion.primitives.enode import Enode
from ophion.runtime.clock import SystemClock, SystemEntropy

ETH = Capability("eth", 68, 17)
SHORT = StageTimeouts(closing=0.3, probe=0.2)
"""Timeouts of peers. Only the timeouts that a test waits for are short, so that a busy machine does not look like a bad
peer.
"""


class Greeter:
    """A sub-protocol that counts its connections."""

    capabilities = (ETH,)

    def __init__(self) -> None:
        self.open = 0
        self.refuses: PeerMisbehaved | None = None
        self.messages: list[bytes] = []

    def attach(self, peer: Peer, version: int) -> Greeter:
        self.open += 1
        peer.send("eth", 0, b"status")
        return self

    def received(self, code: int, payload: bytes) -> None:
        self.messages.append(payload)
        if self.refuses is not None:
            raise self.refuses

    def oversized(self, code: int, size: int) -> None: ...

    def closed(self) -> None:
        self.open -= 1


def key(number: int) -> PrivateKey:
    return PrivateKey(number.to_bytes(32, "big"))


class Node:
    """A running peer service."""

    def __init__(
        self, number: int, settings: PeerSettings, rules: NodeRules | None = None, members: Container[bytes] = ()
    ) -> None:
        self.key = key(number)
        self.greeter = Greeter()
        self.events: list[PeerEvent] = []
        self.service = PeerService(
            settings,
            self.key,
            [self.greeter],
            SystemClock(),
            SystemEntropy(),
            rules=rules,
            is_member=lambda address: address in members,
        )
        self.service.peers.events.listen(self.events.append)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> Node:
        ready = asyncio.Event()
        self._task = asyncio.create_task(self.service.run(ready.set))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task.done():
            self._task.result()
        return self

    async def stop(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    @property
    def enode(self) -> Enode:
        enode = self.service.local_enode
        assert enode is not None
        return enode

    @property
    def count(self) -> int:
        return len(self.service.peers)

    def gone(self) -> list[tuple[DisconnectReason, bool]]:
        return [(event.reason, event.by_us) for event in self.events if isinstance(event, PeerGone)]


class Town:
    """A group of nodes that stop when the test ends."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []

    async def node(
        self,
        number: int,
        settings: PeerSettings | None = None,
        rules: NodeRules | None = None,
        members: Container[bytes] = (),
        **changes: object,
    ) -> Node:
        settings = replace(settings or PeerSettings(timing=SHORT), **changes)  # type: ignore[arg-type]
        node = await Node(number, settings, rules, members).start()
        self._nodes.append(node)
        return node

    async def close(self) -> None:
        await asyncio.gather(*(node.stop() for node in self._nodes))


@asynccontextmanager
async def town() -> AsyncIterator[Town]:
    made = Town()
    try:
        yield made
    finally:
        await made.close()


def play(story: Callable[[Town], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(120), town() as made:
            await story(made)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(whole())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # the time limit of the test bounds this loop
        await asyncio.sleep(0.005)


class UnknownNode:
    """A remote node under the control of the test: a socket and a session."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: Session) -> None:
        self.reader, self.writer, self.session = reader, writer, session

    @classmethod
    async def dial(cls, node: Node, number: int = 99, version: int = 5) -> UnknownNode:
        own = key(number)
        hello = replace(Hello.of("stranger", [ETH], 0, own.public_key), version=version)
        session = Session(Identity(own, hello, (ETH,)), SystemEntropy(), node.key.public_key)
        reader, writer = await asyncio.open_connection(node.enode.ip, node.enode.tcp_port)
        return cls(reader, writer, session)

    async def greet(self) -> list[object]:
        """Send Hello. Returns the other side's events up to its first message or the end of the connection."""
        events: list[object] = []
        while not events:
            self.writer.write(self.session.take_output())
            data = await self.reader.read(65536)
            if not data:
                break
            events += self.session.receive(data, 64)
        self.writer.write(self.session.take_output())
        return events

    async def reason(self) -> DisconnectReason | None:
        """Return the reason why the other side closes the connection."""
        while data := await self.reader.read(65536):
            for event in self.session.receive(data, 64):
                if isinstance(event, DisconnectReceived):
                    return event.reason
        return None

    async def is_closed(self) -> bool:
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass
        return True

    def close(self) -> None:
        self.writer.close()


# --- connecting ----------------------------------------------------------------------------------------


def test_two_nodes_connect() -> None:
    async def story(town: Town) -> None:
        b = await town.node(2)
        a = await town.node(1, static=(b.enode,))
        await until(lambda: a.count == b.count == 1)
        [seen_by_a], [seen_by_b] = a.service.peers, b.service.peers
        assert seen_by_a.id == b.key.public_key
        assert seen_by_a.is_static
        assert not seen_by_b.is_static
        assert seen_by_a.remote == seen_by_b.local == ("127.0.0.1", b.enode.tcp_port)
        assert seen_by_b.enode == replace(a.enode, udp_port=a.enode.tcp_port)
        await until(lambda: a.greeter.messages == b.greeter.messages == [b"status"])
        assert isinstance(a.events[0], PeerConnected)
        assert a.service.peers.by_address(b.key.address) is seen_by_a

    play(story)


def test_nodes_that_are_dialled_or_have_sent_no_status_are_listed() -> None:
    async def story(town: Town) -> None:
        b = await town.node(2)
        silent = await asyncio.start_server(lambda reader, writer: reader.read(), "127.0.0.1", 0)
        port = silent.sockets[0].getsockname()[1]
        dialled = Enode(key(3).public_key, "127.0.0.1", port, 0)
        a = await town.node(1, static=(b.enode, dialled))
        await until(lambda: a.count == 1 and a.service.dialling == 1)
        assert a.service.connecting_addresses(()) == [b.key.address, key(3).address]
        assert a.service.connecting_addresses({b.key.public_key}) == [key(3).address]
        silent.close()

    play(story)


def test_connections_that_stand_do_not_keep_others_from_being_dialled() -> None:
    async def story(town: Town) -> None:
        others = [await town.node(number) for number in range(2, 20)]
        a = await town.node(1, static=tuple(other.enode for other in others))
        await until(lambda: a.count == len(others))
        assert a.service.dialling == 0

    play(story)


def test_port_0_takes_a_free_one_and_says_which() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        assert a.service.is_listening
        assert a.enode.tcp_port > 0
        assert a.enode.url == f"enode://{a.key.public_key.hex()}@127.0.0.1:{a.enode.tcp_port}?discport=0"

    play(story)


def test_behind_a_router_others_and_the_rules_know_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(mapping: PortMapping) -> str:
        return "203.0.113.7"

    monkeypatch.setattr(PortMapping, "ask", ask)

    async def story(town: Town) -> None:
        rules = NodeRules(key(1).public_key)
        a = await town.node(1, rules=rules, asks_router=True, has_discovery=True)
        await until(lambda: a.enode.ip == "203.0.113.7")
        assert a.service.host == "203.0.113.7"
        assert rules.local == a.enode

    play(story)


def test_a_port_in_use_is_one_line() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        with pytest.raises(PeerListenError, match=r"P2P service cannot listen on 127\.0\.0\.1:\d+: .*in use"):
            await town.node(2, port=a.enode.tcp_port)
        with pytest.raises(PeerListenError, match=r"The provided --p2p-interface is not available: 192\.0\.2\.1"):
            await town.node(2, interface="192.0.2.1")
        assert not Node(3, PeerSettings()).service.is_listening
        assert Node(3, PeerSettings()).service.local_enode is None

    play(story)


def _has_ipv6() -> bool:
    """Return whether IPv6 works. Python may support IPv6 while the machine has it switched off."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="no IPv6 here")
def test_over_ipv6() -> None:
    async def story(town: Town) -> None:
        six = PeerSettings(host="::1", interface="::1", timing=SHORT, has_discovery=True)
        b = await town.node(2, six)
        assert f"@[::1]:{b.enode.tcp_port}" in b.enode.url
        a = await town.node(1, six, bootnodes=(b.enode,))
        await until(lambda: a.count == b.count == 1)
        [seen_by_b] = b.service.peers
        assert seen_by_b.remote[0] == "::1"
        assert seen_by_b.enode == a.enode

    play(story)


@pytest.mark.parametrize("attempt", range(5))
def test_simultaneous_dials_leave_exactly_one_connection(attempt: int) -> None:
    async def story(town: Town) -> None:
        a, b = await town.node(1), await town.node(2)
        a.service.add_static(b.enode)
        b.service.add_static(a.enode)

        def is_settled() -> bool:
            """Return whether both sides use the same connection and neither side dials any more."""
            if a.service.dialling or b.service.dialling or not a.count == b.count == 1:
                return False
            [seen_by_a], [seen_by_b] = a.service.peers, b.service.peers
            is_open = seen_by_a.is_open and seen_by_b.is_open
            return is_open and seen_by_a.local == seen_by_b.remote and a.greeter.open == b.greeter.open == 1

        await until(is_settled)
        await asyncio.sleep(0.2)
        assert is_settled()

    play(story)


def test_a_static_peer_is_back_after_a_restart() -> None:
    async def story(town: Town) -> None:
        b = await town.node(2)
        port = b.enode.tcp_port
        a = await town.node(1, static=(b.enode,))
        await until(lambda: a.count == 1)
        await b.stop()
        await until(lambda: a.count == 0)
        assert a.gone() == [(DisconnectReason.CLIENT_QUITTING, False)]
        again = await town.node(2, port=port)
        await until(lambda: a.count == again.count == 1)

    play(story)


def test_add_and_remove() -> None:
    async def story(town: Town) -> None:
        a, b = await town.node(1), await town.node(2)
        assert a.service.add_static(b.enode)
        assert not a.service.add_static(b.enode)
        assert not a.service.add_static(a.enode)
        await until(lambda: a.count == b.count == 1)
        assert a.service.remove_static(b.enode)
        await until(lambda: a.count == b.count == 0)
        assert b.gone() == [(DisconnectReason.REQUESTED, False)]
        assert not a.service.remove_static(b.enode)
        await asyncio.sleep(0.1)
        assert a.count == 0
        b.service.add_static(a.enode)
        await until(lambda: a.count == 1)
        assert not a.service.remove_static(b.enode), "it was not kept, and is dropped all the same"
        await until(lambda: b.gone()[1:] == [(DisconnectReason.REQUESTED, False)])

    play(story)


def test_where_a_peer_listens_that_does_not_say_so() -> None:
    async def story(town: Town) -> None:
        known = Enode(key(99).public_key, "127.0.0.1", 40_404, 40_404)
        a = await town.node(1, static=(known,))
        silent = await UnknownNode.dial(a, 99)
        await silent.greet()
        await until(lambda: a.count == 1)
        [peer] = a.service.peers
        assert peer.hello.listen_port == 0
        assert peer.enode == known
        silent.close()

    play(story)


def test_a_peer_becomes_static_while_it_is_here() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        b = await town.node(2, static=(a.enode,))
        await until(lambda: a.count == 1)
        [peer] = a.service.peers
        assert not peer.is_static
        assert a.service.add_static(b.enode)
        assert peer.is_static

    play(story)


# --- discovery -----------------------------------------------------------------------------------------


def test_nodes_find_each_other_through_a_third_over_real_sockets() -> None:
    async def story(town: Town) -> None:
        first = await town.node(1, has_discovery=True)
        assert first.enode.udp_port == first.enode.tcp_port
        others = [await town.node(number, has_discovery=True, bootnodes=(first.enode,)) for number in (2, 3, 4)]
        await until(lambda: all(node.count == 3 for node in (first, *others)))
        assert all(len(node.service.peers) == 3 for node in others)

    play(story)


def test_a_bootnode_has_a_slot_above_the_peer_limit() -> None:
    async def story(town: Town) -> None:
        late = await town.node(3, has_discovery=True)
        full = await town.node(
            1, PeerSettings(timing=SHORT, limits=PeerLimits(1), has_discovery=True), bootnodes=(late.enode,)
        )
        unknown = await town.node(2)
        unknown.service.add_static(full.enode)
        await until(lambda: full.count == 2 and late.count == unknown.count == 1)

    play(story)


def test_a_removed_peer_is_forgotten_by_discovery_too() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1, has_discovery=True)
        b = await town.node(2, has_discovery=True, bootnodes=(a.enode,))
        await until(lambda: a.count == b.count == 1)
        assert a.service.discovery is not None
        await until(lambda: len(a.service.discovery.buckets) == 1)  # type: ignore[union-attr]
        a.service.remove_static(b.enode)
        assert len(a.service.discovery.buckets) == 0

    play(story)


def test_a_port_taken_for_udp_is_reported_or_skipped() -> None:
    async def story(town: Town) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            with pytest.raises(PeerListenError, match="cannot listen"):
                await town.node(1, has_discovery=True, port=taken.getsockname()[1])
            a = await town.node(1, has_discovery=True)
            assert a.service.is_listening

    play(story)


# --- refusing ------------------------------------------------------------------------------------------


def test_a_wrong_id_leads_nowhere() -> None:
    async def story(town: Town) -> None:
        b = await town.node(2)
        wrong = replace(b.enode, node_id=key(77).public_key)
        no_key = replace(b.enode, node_id=b"\x05" * 64)
        a = await town.node(1, static=(wrong, no_key))
        await until(lambda: a.service.traffic.disconnected.total() > 0)
        await until(lambda: b.service.traffic.disconnected["local", "breach"] >= 1)
        await asyncio.sleep(0.5)
        assert a.count == b.count == 0

    play(story)


def test_the_own_id() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        own = a.key
        hello = Hello.of("me", [ETH], 0, own.public_key)
        me = Session(Identity(own, hello, (ETH,)), SystemEntropy(), own.public_key)
        reader, writer = await asyncio.open_connection("127.0.0.1", a.enode.tcp_port)
        unknown_node = UnknownNode(reader, writer, me)
        with pytest.raises(PeerMisbehaved) as caught:
            await unknown_node.greet()
        assert caught.value.reason is DisconnectReason.CONNECTED_TO_SELF
        writer.write(me.take_output())
        await until(lambda: a.service.traffic.disconnected["local", "connected_to_self"] == 1)
        unknown_node.close()

    play(story)


def test_a_full_node_says_so() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1, limits=PeerLimits(1))
        b = await town.node(2, static=(a.enode,))
        await until(lambda: a.count == 1)
        c = await town.node(3, static=(a.enode,))
        await until(lambda: c.service.traffic.disconnected["remote", "too_many_peers"] > 0)
        assert (a.count, b.count) == (1, 1)
        d = await town.node(4)
        a.service.add_static(d.enode)
        await until(lambda: a.count == 2)

    play(story)


def test_unknown_peers_do_not_keep_a_validator_out() -> None:
    async def story(town: Town) -> None:
        member = key(9)
        a = await town.node(1, limits=PeerLimits(2, 1), members={member.address})
        b = await town.node(2, static=(a.enode,))
        await until(lambda: a.count == b.count == 1)
        c = await town.node(9, static=(a.enode,))
        await until(lambda: a.count == 2 and c.count == 1)
        # node c is a member and uses no slot for unknown peers, so node a can still dial node d
        d = await town.node(4)
        a.service.offer(d.enode)
        await until(lambda: a.count == 3)
        # node a has no free slots, but still dials the member c
        a.service.remove_static(c.enode)
        await c.stop()
        await until(lambda: a.count == 2)
        e = await town.node(9)
        a.service.offer(e.enode)
        await until(lambda: e.count == 1)

    play(story)


def test_banned_ids_never_become_peers() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1, banned=frozenset({key(2).public_key}))
        b = await town.node(2, static=(a.enode,))
        await until(lambda: b.service.traffic.disconnected["remote", "requested"] > 0)
        a.service.add_static(b.enode)
        await asyncio.sleep(0.1)
        assert a.count == 0
        assert a.service.dialling == 0

    play(story)


def test_who_breaks_the_protocol_is_barred_for_a_while_unless_it_is_static() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        a.greeter.refuses = PeerMisbehaved(DisconnectReason.BREACH, "nonsense")
        b = await town.node(2, static=(a.enode,))
        await until(lambda: len(a.service.bans) == 1)
        a.greeter.refuses = None
        await until(lambda: b.service.traffic.disconnected["remote", "requested"] > 0)
        assert a.count == 0
        a.service.add_static(b.enode)
        await until(lambda: a.count == 1)
        assert len(a.service.bans) == 0

    play(story)


def test_other_subnets_are_not_even_listened_to() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1, subnets=(read_subnet("10.0.0.0/8"),))
        unknown_node = await UnknownNode.dial(a)
        assert await unknown_node.is_closed()
        assert a.service.pending.refused == 1
        b = await town.node(2)
        a.service.add_static(b.enode)
        await asyncio.sleep(0.1)
        assert b.service.traffic.bytes_received == 0, "nor are they dialled"
        unknown_node.close()

    play(story)


def test_a_peer_without_shared_capabilities_is_disconnected_with_the_reason() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        own = key(9)
        other = Capability("eth", 99, 17)
        hello = Hello.of("other", [other], 0, own.public_key)
        session = Session(Identity(own, hello, (other,)), SystemEntropy(), a.key.public_key)
        reader, writer = await asyncio.open_connection("127.0.0.1", a.enode.tcp_port)
        unknown_node = UnknownNode(reader, writer, session)
        with pytest.raises(PeerMisbehaved):
            await unknown_node.greet()
        writer.write(session.take_output())
        await until(lambda: a.service.traffic.disconnected["local", "useless"] == 1)
        unknown_node.close()

    play(story)


# --- hostile peers ---------------------------------------------------------------------------------


def test_half_open_connections_time_out_and_are_bounded() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1, timing=replace(SHORT, handshake=2.0))
        sockets = []
        for _ in range(200):
            one = socket.socket()
            one.setblocking(False)
            await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", a.enode.tcp_port))
            sockets.append(one)
            assert len(a.service.pending) <= 50
        b = await town.node(2, static=(a.enode,))
        await until(lambda: a.count == b.count == 1)
        ended = a.service.traffic.disconnected
        await until(lambda: ended["local", "too_many_peers"] + ended["local", "timeout"] == 200)
        assert len(a.service.pending) == 0
        for one in sockets:
            one.close()

    play(story)


def test_who_has_to_go_before_it_was_taken_over_is_closed_at_once() -> None:
    async def story(town: Town) -> None:
        node = await town.node(1, timing=replace(SHORT, handshake=60.0))
        receive = node.service._inbound._receive

        def refuse(taken: socket.socket, said: bytes) -> Connection | None:
            connection = receive(taken, said)
            assert connection is not None
            connection.disconnect(DisconnectReason.TOO_MANY_PEERS, "others need the place")
            return connection

        node.service._inbound._receive = refuse
        unknown_node = await UnknownNode.dial(node)
        assert await unknown_node.is_closed()
        await until(lambda: not node.service._connections)
        unknown_node.close()

    play(story)


def test_those_who_do_not_close_after_they_were_refused_are_bounded() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1, limits=PeerLimits(0), timing=replace(SHORT, closing=60.0))
        strangers = []
        for number in range(150):
            unknown_node = await UnknownNode.dial(a, 100 + number)
            strangers.append(unknown_node)
            await unknown_node.greet()
            assert await unknown_node.reason() is DisconnectReason.TOO_MANY_PEERS
        assert len(a.service._connections) <= 129
        assert await strangers[0].is_closed()
        for unknown_node in strangers:
            unknown_node.close()
        await until(lambda: not a.service._connections)
        assert not a.service._connections.leaving

    play(story)


def test_garbage_instead_of_a_handshake() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        for data in (b"GET / HTTP/1.1\r\n\r\n" * 50, bytes(1000), b"\xff" * 5000, os.urandom(3000)):
            unknown_node = await UnknownNode.dial(a)
            unknown_node.writer.write(data)
            assert await unknown_node.is_closed()
            unknown_node.close()
        assert a.count == 0
        b = await town.node(2, static=(a.enode,))
        await until(lambda: b.count == 1)

    play(story)


def test_endless_zeros_and_large_frames_end_that_connection_only() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        b = await town.node(2, static=(a.enode,))
        await until(lambda: a.count == 1)
        unknown_node = await UnknownNode.dial(a)
        await unknown_node.greet()
        await until(lambda: a.count == 2)
        frame = bytearray(unknown_node.session.seal([(0x10, bytes(1 << 20))]))
        frame[-1] ^= 1
        unknown_node.writer.write(bytes(frame))
        assert await unknown_node.is_closed()
        await until(lambda: a.count == 1)
        assert b.count == 1
        unknown_node.close()

    play(story)


def test_parts_of_large_messages_are_bounded_for_all_peers_together() -> None:
    async def story(town: Town) -> None:
        member = key(100)
        a = await town.node(1, members={address_of(member.public_key)})
        frame_bytes, strangers = 12 * 2**20, []
        for number in range(100, 110):
            unknown_node = await UnknownNode.dial(a, number)
            await unknown_node.greet()
            strangers.append(unknown_node)
            sealed = unknown_node.session.seal([(0x11, os.urandom(frame_bytes))])
            unknown_node.writer.write(sealed[: frame_bytes - 1000])
            await unknown_node.writer.drain()
        assembly = a.service._context.assembly  # type: ignore[union-attr]
        await until(lambda: a.service.traffic.disconnected["local", "timeout"] == 4)
        assert assembly.total <= 64 * 2**20
        assert a.service.peers.by_id(member.public_key) is not None, "who makes blocks may take its time"
        for unknown_node in strangers:
            unknown_node.close()
        await until(lambda: not a.service._connections)
        assert assembly.total == 0

    play(story)


def test_a_hello_without_end_is_read_and_thrown_away_until_the_sender_notices() -> None:
    """The node reads all bytes before it closes the socket. Otherwise the system sends a reset, which could destroy the
    Disconnect.
    """

    async def story(town: Town) -> None:
        a = await town.node(1, timing=StageTimeouts())
        own = key(9)
        hello = Hello.of("x" * 2_000_000, [ETH], 0, own.public_key)
        session = Session(Identity(own, hello, (ETH,)), SystemEntropy(), a.key.public_key)
        reader, writer = await asyncio.open_connection("127.0.0.1", a.enode.tcp_port)
        writer.write(session.take_output())
        while not list(session.receive(await reader.read(65536), 64)):
            pass
        writer.write(session.take_output())
        await writer.drain()
        assert await reader.read() == b"", "the end, and no reset"
        writer.close()
        await until(lambda: a.service.traffic.disconnected["local", "breach"] == 1)

    play(story)


def test_a_dead_connection_does_not_keep_its_peer_out() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1, timing=replace(SHORT, idle=60.0))
        dead = await UnknownNode.dial(a, 5)
        await dead.greet()
        await until(lambda: a.count == 1)
        again = await UnknownNode.dial(a, 5)
        events = await again.greet()
        assert DisconnectReason.ALREADY_CONNECTED in (
            [event.reason for event in events if isinstance(event, DisconnectReceived)] or [await again.reason()]
        )
        await until(lambda: a.count == 0)
        assert a.gone() == [(DisconnectReason.TIMEOUT, True)]
        third = await UnknownNode.dial(a, 5)
        await third.greet()
        await until(lambda: a.count == 1)
        for one in (dead, again, third):
            one.close()

    play(story)


# --- stopping ------------------------------------------------------------------------------------------


def test_stopping_sends_disconnect_to_all_peers_and_waits_briefly() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        others = [await town.node(number, static=(a.enode,)) for number in (2, 3, 4)]
        await until(lambda: a.count == 3)
        silent = await UnknownNode.dial(a)
        await a.stop()
        assert not a.service.is_listening
        for other in others:
            await until(lambda other=other: other.gone() == [(DisconnectReason.CLIENT_QUITTING, False)])  # type: ignore[misc]
        assert await silent.is_closed()
        silent.close()
        assert a.greeter.open == 0

    play(story)


class Puppet(asyncio.Protocol):
    """A node that listens, and stops responding at a chosen stage of the handshake."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        hello = Hello.of("puppet", [ETH], 0, key(50).public_key)
        self.session = Session(Identity(key(50), hello, (ETH,)), SystemEntropy())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.stage == "silent":
            return
        list(self.session.receive(data, 64))
        output = self.session.take_output()
        if self.stage == "ack":
            output = output[: 2 + int.from_bytes(output[:2], "big")]
        elif self.stage == "half ack":
            output = output[:100]
        self.transport.write(output)  # type: ignore[attr-defined]


@pytest.mark.parametrize("stage", ["refused", "silent", "half ack", "ack", "hello"])
def test_stopping_at_every_stage_of_a_dial(stage: str) -> None:
    async def story(town: Town) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Puppet(stage), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        if stage == "refused":
            server.close()
        target = Enode(key(50).public_key, "127.0.0.1", port, 0)
        a = await town.node(1, static=(target,), timing=StageTimeouts())
        await asyncio.sleep(0.1)
        await a.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        server.close()

    play(story)


@pytest.mark.parametrize("sent", [0, 1, 100, "auth", "hello"])
def test_stopping_at_every_stage_of_an_inbound_connection(sent: int | str) -> None:
    async def story(town: Town) -> None:
        a = await town.node(1, timing=StageTimeouts())
        unknown_node = await UnknownNode.dial(a)
        if sent == "hello":
            await unknown_node.greet()
        elif sent == "auth":
            unknown_node.writer.write(unknown_node.session.take_output())
        else:
            assert isinstance(sent, int)
            unknown_node.writer.write(unknown_node.session.take_output()[:sent])
        await asyncio.sleep(0.05)
        await a.stop()
        unknown_node.close()

    play(story)


def test_stopping_under_fire() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        others = [await town.node(number, static=(a.enode,)) for number in range(2, 12)]
        await asyncio.sleep(0.02)
        await a.stop()
        for other in others:
            assert other.count == 0 or await _empties(other)

    play(story)


async def _empties(node: Node) -> bool:
    await until(lambda: node.count == 0)
    return True


def outcome(reason: DisconnectReason, lived: float) -> DialOutcome:
    return outcome_of(ConnectionEnd(reason, False, ""), lived)


def test_what_an_end_says_about_the_next_attempt() -> None:
    assert outcome(DisconnectReason.TCP_ERROR, 3.0) is DialOutcome.LOST, "a line that is cut often is dialled as often"
    assert outcome(DisconnectReason.TCP_ERROR, 0.1) is DialOutcome.FAILED
    assert outcome(DisconnectReason.SUBPROTOCOL, 3.0) is DialOutcome.FAILED, "another network stays another network"
    assert outcome(DisconnectReason.SUBPROTOCOL, 40.0) is DialOutcome.LOST
    assert outcome(DisconnectReason.TOO_MANY_PEERS, 0.0) is DialOutcome.FULL
    assert outcome(DisconnectReason.ALREADY_CONNECTED, 9.0) is DialOutcome.DUPLICATE


# --- many connections ----------------------------------------------------------------------------------


def test_connections_that_are_over_do_not_wait_for_a_collection_of_cycles() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        made = [weakref.ref(await _one_connection(a, number)) for number in range(100, 110)]
        await until(lambda: all(reference() is None for reference in made))

    gc.collect()
    gc.disable()
    try:
        play(story)
    finally:
        gc.enable()


async def _one_connection(node: Node, number: int) -> Connection:
    unknown_node = await UnknownNode.dial(node, number)
    await unknown_node.greet()
    await until(lambda: node.count == 1)
    [connection] = node.service._by_peer.values()
    unknown_node.close()
    await until(lambda: node.count == 0)
    return connection


def open_descriptors() -> int:
    """Return the number of open descriptors; 0 if the system does not report this number."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_many_connections_later_everything_is_as_it_was() -> None:
    async def story(town: Town) -> None:
        a = await town.node(1)
        # the first stream makes the event loop open a lasting file, so make a stream before counting descriptors
        first = await UnknownNode.dial(a)
        await first.greet()
        first.close()
        await until(lambda: a.service.traffic.disconnected["remote", "tcp_error"] == 1)
        descriptors = open_descriptors()
        for number in range(100):
            unknown_node = await UnknownNode.dial(a, 100 + number % 7)
            if number % 3:
                await unknown_node.greet()
            unknown_node.close()
            await unknown_node.writer.wait_closed()
        await until(lambda: a.count == 0 and len(a.service.pending) == 0)
        await until(lambda: not a.service._connections)
        assert a.greeter.open == 0
        assert not a.service._by_peer
        assert not a.service.plan._found
        await until(lambda: open_descriptors() <= descriptors)
        tasks = asyncio.all_tasks()
        assert len(tasks) <= 4, tasks

    play(story)


def test_the_wire_format_is_as_specified() -> None:
    """A peer of p2p version 4 exchanges uncompressed messages, also over real sockets."""

    async def story(town: Town) -> None:
        a = await town.node(1)
        old = await UnknownNode.dial(a, version=4)
        await old.greet()
        await until(lambda: a.count == 1)
        old.writer.write(old.session.seal([(0x11, b"plain words")]))
        await until(lambda: a.greeter.messages == [b"plain words"])
        old.close()
        assert wire.MAX_HANDSHAKE_SIZE == 2048

    play(story)


def test_a_node_that_is_not_permitted_is_refused_let_in_and_put_out(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("nodes-whitelist=[]")
    listed = AllowList(RulesFile(path, NODES))

    async def story(town: Town) -> None:
        guarded = await town.node(1, rules=NodeRules(key(1).public_key, listed))
        other = await town.node(2)
        other.service.add_static(guarded.enode)
        # after Hello has proved its key, the node is refused with disconnect reason 0
        await until(lambda: (DisconnectReason.REQUESTED, False) in other.gone())
        assert guarded.count == 0
        enode = replace(other.enode, udp_port=other.enode.tcp_port)
        listed.add([enode])
        other.service.remove_static(guarded.enode)
        other.service.add_static(guarded.enode)
        await until(lambda: guarded.count == 1 and other.count == 1)
        listed.remove([enode])
        await until(lambda: guarded.count == 0)
        assert guarded.gone() == [(DisconnectReason.REQUESTED, True)]

    play(story)


def test_a_node_that_is_not_permitted_is_not_dialled(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("nodes-whitelist=[]")
    listed = AllowList(RulesFile(path, NODES))

    async def story(town: Town) -> None:
        other = await town.node(2)
        guarded = await town.node(1, rules=NodeRules(key(1).public_key, listed))
        guarded.service.offer(other.enode)
        await asyncio.sleep(0.05)
        assert guarded.service.dialling == guarded.count == other.service.pending.refused == 0
        listed.add([other.enode])
        guarded.service.offer(other.enode)
        await until(lambda: guarded.count == 1)

    play(story)


def test_slow_rules_do_not_check_every_unknown_node_that_pings() -> None:
    class Slow(NodeRules):
        asked = 0

        def refusal_of(self, remote: Enode, action: Action) -> str | None:
            if remote.ip == "10.0.0.9":
                self.asked += 1
                time.sleep(0.15)
            return None

    async def story(town: Town) -> None:
        known = Enode(key(5).public_key, "10.0.0.5", 30303, 30303)
        rules = Slow(key(1).public_key)
        node = await town.node(1, rules=rules, has_discovery=True, static=(known,))
        may = node.service._access.may_discover
        strangers = [Enode(key(number).public_key, "10.0.0.9", 30303, 30303) for number in range(20, 30)]
        answers = [may(unknown_node, Action.ACCEPT_PING) for unknown_node in strangers]
        assert answers == [True, True, *[False] * 8]
        assert rules.asked == 2
        assert may(known, Action.ACCEPT_PING), "who is known is asked about"
        assert may(strangers[0], Action.SEND_PING), "and so is what this node wants itself"

    play(story)


def test_a_refused_flood_is_not_answered_and_permitted_nodes_connect(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("nodes-whitelist=[]")
    listed = AllowList(RulesFile(path, NODES))

    async def attempt(guarded: Node, number: int) -> DisconnectReason | None:
        unknown_node = await UnknownNode.dial(guarded, number)
        try:
            await unknown_node.greet()
            return await unknown_node.reason()
        except ConnectionError:
            return None
        finally:
            unknown_node.close()

    async def story(town: Town) -> None:
        guarded = await town.node(1, rules=NodeRules(key(1).public_key, listed))
        reasons = [await attempt(guarded, 1000 + number) for number in range(100)]
        assert reasons[:10] == [DisconnectReason.REQUESTED] * 10
        assert reasons.count(None) > 20, "most are not even answered"
        assert guarded.service.pending.refused == reasons.count(None)
        assert len(guarded.service.pending) == 0
        flood = asyncio.create_task(_forever(lambda: attempt(guarded, 5000)))
        # during the flood, a known node connects at once from the same IP address
        other = await town.node(2)
        listed.add([replace(other.enode, udp_port=other.enode.tcp_port)])
        other.service.add_static(guarded.enode)
        await until(lambda: guarded.count == 1)
        flood.cancel()

    play(story)


async def _forever(act: Callable[[], Awaitable[object]]) -> None:
    while True:
        await act()


@pytest.mark.parametrize(
    "said", [b"", b"\x01", b"\x01\x33" + bytes(10), b"\xff\xff", b"\x00\x00", bytes(3000), b"\x01\x33" + b"\4" * 307]
)
def test_bytes_read_from_a_flood_are_bounded(tmp_path: Path, said: bytes) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("nodes-whitelist=[]")
    listed = AllowList(RulesFile(path, NODES))

    async def story(town: Town) -> None:
        rules = NodeRules(key(1).public_key, listed)
        guarded = await town.node(1, rules=rules, timing=replace(SHORT, handshake=0.2))
        for number in range(200):
            guarded.service._inbound.flood_guard.refused(
                "127.0.0.1", number.to_bytes(64, "big"), SystemClock().monotonic()
            )
        strangers = [await UnknownNode.dial(guarded) for _ in range(60)]
        for unknown_node in strangers:
            unknown_node.writer.write(said)
        assert len(guarded.service.pending) <= 50
        for unknown_node in strangers:
            assert await unknown_node.is_closed()
            unknown_node.close()
        assert len(guarded.service.pending) == 0
        assert guarded.service.traffic.bytes_sent == 0

    play(story)
