"""Tests discovery between in-memory nodes, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

import pytest

from ophion.native import wire
from ophion.native.crypto import PrivateKey
from ophion.peers.discovery.discovery import _MAX_LEARNING, Discovery, DiscoveryContext, EthEntry
from ophion.peers.discovery.lookup import Lookup
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
from ophion.permissions.node_rules import Action
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from ophion.runtime.clock import ManualClock
from ophion.testing.virtual_loop import run_virtually

OURS = rlp.encode([[b"ours", 0]])


def key(number: int) -> PrivateKey:
    return PrivateKey(number.to_bytes(32, "big"))


class Ether:
    """Delivers datagrams by address. A datagram is lost only if a test drops it."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.places: dict[tuple[str, int], Callable[[bytes, str, int], None]] = {}
        self.nodes: list[Node] = []

    def send(self, data: bytes, source: tuple[str, int], target: tuple[str, int]) -> None:
        receive = self.places.get(target)
        if receive is not None:
            asyncio.get_running_loop().call_soon(receive, data, *source)

    def node(self, number: int, bootnodes: Sequence[Enode] = (), chain: bytes | None = OURS) -> Node:
        node = Node(self, number, bootnodes, chain)
        self.nodes.append(node)
        return node

    def stranger(self, number: int, ip: str = "127.0.0.1") -> UnknownNode:
        return UnknownNode(self, number, ip)


class Node:
    """A node with discovery, at one address of the network."""

    def __init__(self, ether: Ether, number: int, bootnodes: Sequence[Enode], chain: bytes | None) -> None:
        self.key = key(number)
        self.enode = Enode(self.key.public_key, "127.0.0.1", 30_000 + number, 30_000 + number)
        self.offered: list[Enode] = []
        self.banned: set[bytes] = set()
        self.forbidden: set[Action] = set()
        self.wants_more = True
        self.reserved: set[bytes] = set()
        place = ("127.0.0.1", self.enode.udp_port)
        context = DiscoveryContext(
            send=lambda data, target: ether.send(data, place, target),
            offer=self.offered.append,
            wants_more=lambda: self.wants_more,
            may=lambda enode, action: enode.node_id not in self.banned and action not in self.forbidden,
            is_reserved=self.reserved.__contains__,
            chain=EthEntry(lambda: chain, lambda item: item == [b"ours", b""]),
        )
        record = LocalRecord(self.key, ether.clock)
        self.discovery = Discovery(self.key, "127.0.0.1", record, bootnodes, ether.clock, Random(number), context)
        self.discovery.settle(self.enode.tcp_port, self.enode.udp_port)
        ether.places[place] = self.discovery.received
        self.task = asyncio.create_task(self.discovery.run())

    def known(self) -> set[bytes]:
        return {enode.node_id for enode in self.discovery.buckets}


class UnknownNode:
    """An unknown node whose packets the test sends."""

    def __init__(self, ether: Ether, number: int, ip: str) -> None:
        self.ether, self.key, self.place = ether, key(number), (ip, 50_000 + number)
        self.recorded: list[tuple[bytes, Packet]] = []
        ether.places[self.place] = self.receive

    def receive(self, data: bytes, ip: str, port: int) -> None:
        digest, _, kind, body = wire.open_packet(data)
        self.recorded.append((digest, decode(kind, body)))

    async def say(self, packet: Packet, node: Node) -> bytes:
        """Send a packet and let all nodes react. Returns the hash of the packet."""
        data = wire.seal_packet(self.key.secret(), *encode(packet))
        self.ether.send(data, self.place, ("127.0.0.1", node.enode.udp_port))
        for _ in range(5):
            await asyncio.sleep(0)
        return data[:32]

    def take(self) -> list[Packet]:
        recorded, self.recorded = [packet for _, packet in self.recorded], []
        return recorded

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.place[0], self.place[1], self.place[1])

    def ping(self, **changes: object) -> Ping:
        values: dict[str, object] = {
            "sender": self.endpoint, "receiver": Endpoint("127.0.0.1", 1, 0), "expiration": self.expiry,
        }  # fmt: skip
        return Ping(**{**values, **changes})  # type: ignore[arg-type]

    @property
    def expiry(self) -> int:
        return int(self.ether.clock.now()) + 20

    async def bond(self, node: Node) -> None:
        await self.say(self.ping(), node)
        [(digest, _)] = [(digest, packet) for digest, packet in self.recorded if isinstance(packet, Ping)]
        await self.say(Pong(self.endpoint, digest, self.expiry), node)
        self.recorded.clear()


def play(story: Callable[[Ether], Awaitable[None]]) -> None:
    clock = ManualClock()

    async def whole() -> None:
        ether = Ether(clock)
        await story(ether)
        for node in ether.nodes:
            node.task.cancel()
        await asyncio.gather(*(node.task for node in ether.nodes), return_exceptions=True)
        assert all(node.discovery.open_questions == 0 for node in ether.nodes)

    run_virtually(whole(), clock)


# --- a network -----------------------------------------------------------------------------------------


def test_nodes_that_know_one_another_through_a_third_find_and_offer_each_other() -> None:
    async def story(ether: Ether) -> None:
        first = ether.node(1)
        others = [ether.node(number, [first.enode]) for number in range(2, 12)]
        await asyncio.sleep(60)
        everybody = {node.key.public_key for node in ether.nodes}
        for node in (first, *others):
            assert node.known() == everybody - {node.key.public_key}
            assert {enode.node_id for enode in node.offered} == everybody - {node.key.public_key}
            assert all(enode.tcp_port == enode.udp_port for enode in node.offered)

    play(story)


def test_what_is_remembered_of_suitable_nodes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ophion.peers.discovery.discovery._MAX_SUITABLE", 3)

    async def story(ether: Ether) -> None:
        first = ether.node(1)
        for number in range(2, 9):
            ether.node(number, [first.enode])
        await asyncio.sleep(60)
        assert all(len(node.discovery._suitable) <= 3 for node in ether.nodes)
        assert len(first.offered) >= 7

    play(story)


@pytest.mark.parametrize("is_reserved", [False, True])
def test_unknown_nodes_do_not_keep_a_reserved_node_out(is_reserved: bool) -> None:
    async def story(ether: Ether) -> None:
        node, late = ether.node(1), ether.stranger(99)
        if is_reserved:
            node.reserved.add(late.key.public_key)
        for number in range(10, 10 + _MAX_LEARNING):
            # these nodes never send their record, so each keeps a slot for a record request
            await ether.stranger(number).bond(node)
        await late.bond(node)
        await asyncio.sleep(1.4)
        assert (late.key.public_key in {enode.node_id for enode in node.offered}) is is_reserved

    play(story)


def test_a_bootnode_that_comes_late_is_found() -> None:
    async def story(ether: Ether) -> None:
        late = Enode(key(1).public_key, "127.0.0.1", 30_001, 30_001)
        a, b = ether.node(2, [late]), ether.node(3, [late])
        await asyncio.sleep(100)
        assert a.known() == b.known() == set()
        ether.node(1)
        await asyncio.sleep(100)
        assert b.key.public_key in a.known()

    play(story)


def test_a_bootnode_that_was_away_for_long_is_found_again() -> None:
    async def story(ether: Ether) -> None:
        boot = ether.node(1)
        node = ether.node(2, [boot.enode])
        await asyncio.sleep(10)
        place = ("127.0.0.1", boot.enode.udp_port)
        receive = ether.places.pop(place)
        await asyncio.sleep(600)
        assert node.known() == set()
        # the bootnode has restarted: it has forgotten the node, and has no bootnodes itself
        boot.discovery.forget(node.key.public_key)
        ether.places[place] = receive
        node.offered.clear()
        await asyncio.sleep(60)
        assert node.known() == {boot.key.public_key}
        assert {enode.node_id for enode in node.offered} == {boot.key.public_key}, "to be dialled again"

    play(story)


def test_a_node_that_is_gone_is_forgotten() -> None:
    async def story(ether: Ether) -> None:
        a = ether.node(1)
        b = ether.node(2, [a.enode])
        await asyncio.sleep(10)
        assert a.known() == {b.key.public_key}
        del ether.places["127.0.0.1", b.enode.udp_port]
        assert a.discovery.repeated_count.total() == 0
        await asyncio.sleep(120)
        assert a.known() == set()
        assert a.discovery.repeated_count["ping"] > 0
        questions = {kind: a.discovery.sent_count[kind] for kind in a.discovery.asked_count}
        assert questions == a.discovery.asked_count, "everything else that it sent was an answer"

    play(story)


def test_a_node_of_another_chain_is_known_but_not_offered_and_one_without_an_entry_is() -> None:
    async def story(ether: Ether) -> None:
        a = ether.node(1)
        other = ether.node(2, [a.enode], chain=rlp.encode([[b"othr", 0]]))
        silent = ether.node(3, [a.enode], chain=None)
        await asyncio.sleep(30)
        assert a.known() == {other.key.public_key, silent.key.public_key}
        assert {enode.node_id for enode in a.offered} == {silent.key.public_key}

    play(story)


def test_banned_nodes_are_neither_answered_nor_asked() -> None:
    async def story(ether: Ether) -> None:
        a = ether.node(1)
        a.banned.add(key(2).public_key)
        b = ether.node(2, [a.enode])
        await asyncio.sleep(30)
        assert a.known() == b.known() == set()
        assert not a.discovery.sent_count

    play(story)


def test_a_peer_that_is_no_longer_permitted_is_dropped_and_its_proof_is_refused() -> None:
    async def story(ether: Ether) -> None:
        a = ether.node(1)
        b, c = ether.node(2, [a.enode]), ether.node(3, [a.enode])
        await asyncio.sleep(10)
        a.banned.add(b.key.public_key)
        a.discovery.recheck()
        assert a.known() == {c.key.public_key}
        await asyncio.sleep(60)
        assert a.known() == {c.key.public_key}

    play(story)


# Node permissions apply in five places of discovery, and each has its own test (operations.md 10.2, networking.md 5.4).


def test_discovery_bonding_is_not_accepted_from_a_forbidden_node() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        node.forbidden.add(Action.ACCEPT_PING)
        await unknown_node.say(unknown_node.ping(), node)
        assert unknown_node.take() == []

    play(story)


def test_discovery_bonding_is_not_begun_with_a_forbidden_node() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        node.forbidden.add(Action.SEND_PING)
        await unknown_node.say(unknown_node.ping(), node)
        assert [type(one) for one in unknown_node.take()] == [Pong], "answered, and not asked back"

    play(story)


def test_neighbour_requests_of_a_forbidden_node_are_not_answered() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        await unknown_node.bond(node)
        node.forbidden.add(Action.ANSWER_FIND_NODE)
        await unknown_node.say(FindNode(b"\x01" * 64, unknown_node.expiry), node)
        assert unknown_node.take() == []

    play(story)


@pytest.mark.parametrize("is_forbidden", [False, True])
def test_neighbour_requests_are_not_sent_to_a_forbidden_node(is_forbidden: bool) -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        if is_forbidden:
            node.forbidden.add(Action.SEND_FIND_NODE)
        await unknown_node.bond(node)
        await asyncio.sleep(60)
        assert any(isinstance(one, FindNode) for one in unknown_node.take()) is not is_forbidden

    play(story)


def test_peer_table_insertion_of_a_forbidden_node() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        node.forbidden.add(Action.KEEP_IN_TABLE)
        await unknown_node.bond(node)
        assert node.known() == set()
        node.forbidden.clear()
        await ether.stranger(8).bond(node)
        assert node.known() == {key(8).public_key}

    play(story)


# --- packet by packet ----------------------------------------------------------------------------------


def test_a_ping_is_answered_with_the_true_address_and_a_ping_back() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        wrong = Endpoint("10.9.9.9", 1, 7777)
        digest = await unknown_node.say(unknown_node.ping(sender=wrong, receiver=Endpoint("1.2.3.4", 5, 6)), node)
        pong, back = unknown_node.take()
        assert isinstance(pong, Pong)
        assert pong.ping_hash == digest
        assert pong.receiver == Endpoint("127.0.0.1", unknown_node.place[1], 7777)
        assert pong.record_seq == node.discovery.record.seq
        assert isinstance(back, Ping)
        assert back.sender == Endpoint("127.0.0.1", 30_001, 30_001)
        await unknown_node.say(unknown_node.ping(), node)
        assert [type(one) for one in unknown_node.take()] == [Pong], "one question at a time"

    play(story)


def test_after_the_proof_there_is_no_ping_back_and_questions_are_answered() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        await unknown_node.bond(node)
        await unknown_node.say(unknown_node.ping(sender=Endpoint("", 0, 0)), node)
        assert [type(one) for one in unknown_node.take()] == [Pong]
        await unknown_node.say(FindNode(b"\x01" * 64, unknown_node.expiry), node)
        [neighbors] = unknown_node.take()
        assert neighbors == Neighbors((), neighbors.expiration)  # type: ignore[union-attr]
        digest = await unknown_node.say(RecordRequest(unknown_node.expiry), node)
        [response] = [one for one in unknown_node.take() if isinstance(one, RecordResponse)]
        assert response.request_hash == digest
        assert Record.read(response.record).node_id == node.key.public_key

    play(story)


def test_no_response_without_an_endpoint_proof() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        await unknown_node.say(FindNode(b"\x01" * 64, unknown_node.expiry), node)
        await unknown_node.say(RecordRequest(unknown_node.expiry), node)
        assert unknown_node.take() == []
        await unknown_node.bond(node)
        elsewhere = ether.stranger(9, ip="127.0.0.2")
        await elsewhere.say(FindNode(b"\x01" * 64, unknown_node.expiry), node)
        assert elsewhere.take() == [], "the proof was for another address"

    play(story)


def test_expired_packets_are_ignored() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        past = int(ether.clock.now()) - 1
        await unknown_node.say(unknown_node.ping(expiration=past), node)
        await unknown_node.say(unknown_node.ping(expiration=2**64 - 5), node)
        assert unknown_node.take() == []
        await unknown_node.bond(node)
        await unknown_node.say(FindNode(b"\x01" * 64, past), node)
        assert unknown_node.take() == []
        assert node.discovery.received_count["bad"] == 3

    play(story)


def test_a_pong_with_another_hash_or_from_another_address_proves_nothing() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        await unknown_node.say(unknown_node.ping(), node)
        digest = next(digest for digest, packet in unknown_node.recorded if isinstance(packet, Ping))
        await unknown_node.say(Pong(unknown_node.endpoint, b"\x01" * 32, unknown_node.expiry), node)
        await ether.stranger(9, ip="127.0.0.3").say(Pong(unknown_node.endpoint, digest, unknown_node.expiry), node)
        unknown_node.take()
        await unknown_node.say(FindNode(b"\x01" * 64, unknown_node.expiry), node)
        assert unknown_node.take() == []
        assert node.known() == set()
        await asyncio.sleep(2)
        await unknown_node.say(Pong(unknown_node.endpoint, digest, unknown_node.expiry), node)
        assert node.known() == set(), "too late"

    play(story)


def test_a_flood_of_pings_takes_no_question_of_this_node_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ophion.peers.discovery.discovery._MAX_OPEN", 32)
    monkeypatch.setattr("ophion.peers.discovery.discovery._MAX_RETURNED", 16)

    async def story(ether: Ether) -> None:
        node = ether.node(1)
        friend = ether.node(2, [node.enode])
        await asyncio.sleep(10)
        assert node.known() == {friend.key.public_key}

        async def flood() -> None:
            for number in range(100, 100 + 60 * 60):
                nobody = UnknownNode(ether, number, "127.0.0.9")
                del ether.places[nobody.place]
                data = wire.seal_packet(nobody.key.secret(), *encode(nobody.ping()))
                ether.send(data, nobody.place, ("127.0.0.1", node.enode.udp_port))
                if number % 6 == 0:
                    await asyncio.sleep(0.1)
                    assert node.discovery.open_questions <= 16 + 16

        flooding = asyncio.create_task(flood())
        await asyncio.sleep(30)
        newcomer = ether.node(3, [node.enode])
        await asyncio.sleep(25)
        assert node.known() == {friend.key.public_key, newcomer.key.public_key}
        assert newcomer.known() == {node.key.public_key, friend.key.public_key}
        await flooding

    play(story)


def test_who_is_in_the_table_needs_no_new_proof_because_others_bring_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ophion.peers.discovery.endpoint_proofs._MOST", 8)

    async def story(ether: Ether) -> None:
        node, friend = ether.node(1), ether.stranger(9)
        await friend.bond(node)
        for number in range(100, 120):
            await ether.stranger(number).bond(node)
        await friend.say(FindNode(b"\x01" * 64, friend.expiry), node)
        await friend.say(RecordRequest(friend.expiry), node)
        assert {type(one) for one in friend.take()} == {Neighbors, RecordResponse}

    play(story)


def test_a_node_that_is_named_where_it_is_not_stays_in_the_table() -> None:
    async def story(ether: Ether) -> None:
        node = ether.node(1)
        friend = ether.node(2, [node.enode])
        await asyncio.sleep(10)
        elsewhere = Enode(friend.key.public_key, "127.0.0.7", 30_002, 30_002)
        for _ in range(6):
            walk = Lookup(b"\x01" * 64, node.key.public_key, [elsewhere])
            [asked] = walk.next_nodes()
            await node.discovery._ask_on(walk, asked)
        assert node.known() == {friend.key.public_key}
        assert not node.discovery._failures

    play(story)


def test_unsolicited_neighbours_change_nothing() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        await unknown_node.bond(node)
        fake = Neighbor(Endpoint("127.0.0.1", 40_000, 40_000), key(77).public_key)
        await unknown_node.say(Neighbors((fake,), unknown_node.expiry), node)
        await unknown_node.say(FindNode(fake.node_id, unknown_node.expiry), node)
        found = [one for one in unknown_node.take() if isinstance(one, Neighbors)]
        assert [node.nodes for node in found] == [()]

    play(story)


def test_a_node_that_lies_about_others_cannot_make_us_write_to_them() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        victim = ether.stranger(5, ip="8.8.8.8")
        await unknown_node.bond(node)
        for _ in range(200):
            await asyncio.sleep(0.05)
            if any(isinstance(packet, FindNode) for _, packet in unknown_node.recorded):
                break
        named = [Neighbor(Endpoint("8.8.8.8", 80, 80), key(5).public_key)]
        named += [Neighbor(Endpoint("0.0.0.0", 40_000, 1), key(6).public_key)]
        await unknown_node.say(Neighbors(tuple(named), unknown_node.expiry), node)
        await asyncio.sleep(1)
        assert victim.take() == []

    play(story)


def test_sixteen_neighbours_come_in_two_packets_the_nearest_first() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(99)
        for number in range(10, 40):
            await ether.stranger(number).bond(node)
        await unknown_node.bond(node)
        await unknown_node.say(FindNode(b"\x01" * 64, unknown_node.expiry), node)
        packets = [one for one in unknown_node.take() if isinstance(one, Neighbors)]
        assert [len(one.nodes) for one in packets] == [12, 4]
        nearest = node.discovery.buckets.closest(_place(b"\x01" * 64), 17)
        wanted = [enode.node_id for enode in nearest if enode.node_id != unknown_node.key.public_key][:16]
        assert [one.node_id for packet in packets for one in packet.nodes] == wanted

    play(story)


def _place(node_id: bytes) -> int:
    from ophion.peers.discovery.routing_table import place_of

    return place_of(node_id)


def test_garbage_is_dropped_in_silence() -> None:
    async def story(ether: Ether) -> None:
        node, unknown_node = ether.node(1), ether.stranger(9)
        good = wire.seal_packet(unknown_node.key.secret(), *encode(unknown_node.ping()))
        target = ("127.0.0.1", node.enode.udp_port)
        for data in (b"", b"x", bytes(1280), good[:-1], b"\x00" + good[1:], good + bytes(2000)):
            ether.send(data, unknown_node.place, target)
        ether.send(wire.seal_packet(unknown_node.key.secret(), 9, b"\xc0"), unknown_node.place, target)
        await asyncio.sleep(0.01)
        assert unknown_node.take() == []
        assert node.discovery.received_count["bad"] == 7
        assert PacketKind.PING.name.lower() not in node.discovery.received_count

    play(story)


def test_what_is_asked_at_a_time_is_bounded() -> None:
    async def story(ether: Ether) -> None:
        node = ether.node(1)
        for number in range(1000):
            unknown_node = ether.stranger(1000 + number)
            await unknown_node.say(unknown_node.ping(), node)
        assert node.discovery.open_questions <= 256

    play(story)
