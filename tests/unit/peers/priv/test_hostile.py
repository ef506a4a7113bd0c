"""Tests hostile members on a real session, and checks all data that a non-member receives."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from pathlib import Path

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.enclave.interface import MAX_KEYS
from ophion.enclave.payload_exchange import EnclaveLinkLost, RecordKind, RecordLabel, RecordListing
from ophion.enclave.payload_intake import MAX_RECORD_BYTES
from ophion.native.enclave import EnclaveKeyring
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.peer import Peer
from ophion.peers.priv import messages
from ophion.peers.priv.messages import Code, ListRequest
from ophion.peers.priv.peer import PrivPeer
from ophion.peers.priv.protocol import PrivProtocol
from ophion.primitives import rlp
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.testing.enclaves import EnclaveMember, at_work, met, part
from ophion.testing.memory_connection import Host, MemoryConnection
from ophion.testing.wait_for import until

PLANTED = b"planted-47-planted-contract-code-and-arguments"


class Liar(PrivProtocol):
    """Sends no message by itself and records all received messages."""

    def __init__(self, member: EnclaveMember) -> None:
        super().__init__(member.enclave, member.node_key.public_key, SystemClock(), SystemEntropy())
        self.recorded: list[tuple[int, bytes]] = []

    def attach(self, peer: Peer, version: int) -> PrivPeer:
        return Deaf(self, peer)


class Deaf(PrivPeer):
    """A peer that records messages without reacting."""

    def __init__(self, liar: Liar, peer: Peer) -> None:
        super().__init__(peer, liar.enclave, liar.node_id, liar.clock, liar.entropy, liar.lane)
        self._recorded = liar.recorded

    def received(self, code: int, payload: bytes) -> None:
        self._recorded.append((code, payload))


UNPROVEN = [
    (Code.PUSH_PAYLOAD, rlp.encode([b"x"])),
    (Code.PUSH_GROUP, rlp.encode([b"x"])),
    (Code.GET_PAYLOAD, messages.encode_request(1, [])),
    (Code.LIST, messages.encode_list(ListRequest(1, bytes(32), 0))),
]
BREACHES = [
    *UNPROVEN,
    (Code.ANNOUNCE, b"\xff"),
    (Code.ANNOUNCE, rlp.encode([bytes([n]) * 32 for n in range(MAX_KEYS + 1)])),
    (Code.CHALLENGE, rlp.encode([[b"x"]])),
    (Code.PROOF, b""),
    (Code.ACK, b"\xc1\x00"),
    (Code.PAYLOAD, b"\x80"),
    (Code.LISTED, b"\xc0"),
    (Code.PUSH_PAYLOAD, bytes(MAX_RECORD_BYTES + 2 * 1024 * 1024)),
    (Code.PUSH_PAYLOAD, bytes(16 * 1024 * 1024 - 64)),
]


@pytest.mark.parametrize(("code", "payload"), BREACHES)
def test_a_breach_disconnects(tmp_path: Path, code: Code, payload: bytes) -> None:
    victim, evil = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        host = victim.host()
        meeting = MemoryConnection(Host(evil.node_key, [Liar(evil)]), host)
        near, _ = await meeting.peers()
        near.send("priv", code, payload)
        await meeting.wait_closed()
        assert [ending.reason for ending in host.endings] == [DisconnectReason.BREACH]
        assert victim.enclave.directory.known() == {}
        assert victim.store.rows("payloads", b"", b"", 1) == []

    asyncio.run(story())


def test_endless_announcements_disconnect(tmp_path: Path) -> None:
    victim, evil = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        host = victim.host()
        liar = Liar(evil)
        meeting = MemoryConnection(Host(evil.node_key, [liar]), host)
        near, _ = await meeting.peers()
        for number in range(50):
            near.send("priv", Code.ANNOUNCE, messages.encode_keys([bytes([number + 1]) * 32]))
        await meeting.wait_closed()
        assert [ending.reason for ending in host.endings] == [DisconnectReason.BREACH]
        assert sum(code == Code.CHALLENGE for code, _ in liar.recorded) <= 12

    asyncio.run(story())


def test_a_key_that_is_not_proven_is_sent_nothing(tmp_path: Path) -> None:
    """A peer claims b's key but cannot answer the challenge, so it gets no payloads."""
    a, b, evil = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))

    async def story() -> None:
        liar = Liar(evil)
        meeting = MemoryConnection(Host(evil.node_key, [liar]), a.host())
        near, _ = await meeting.peers()
        near.send("priv", Code.ANNOUNCE, messages.encode_keys([b.key]))
        await until(lambda: any(code == Code.CHALLENGE for code, _ in liar.recorded))
        near.send("priv", Code.PROOF, messages.encode_proofs([(b.key, bytes(32))]))
        await asyncio.sleep(0.02)
        assert not a.enclave.directory.links(b.key)
        await part([meeting])

    asyncio.run(story())


def test_records_of_others_are_refused_and_the_session_goes_on(tmp_path: Path) -> None:
    """Wrong keys and replays get a refusal with a reason, and the session continues."""
    victim, evil = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)
    unknown_ring = EnclaveKeyring([b"\x55" * 32])
    [strange] = unknown_ring.public_keys

    async def story() -> None:
        async with at_work(victim, evil):
            meetings = await met(victim, evil)
            [line] = evil.enclave.directory.links(victim.key)
            members = [victim.key, strange]
            _, record = unknown_ring.seal(b"text", strange, members, 2, legacy_id(members), SystemEntropy().token(80))
            [entry] = messages.read_payloads(rlp.encode([record]))
            assert await line.push(entry) == "its sender's key is not proven"
            assert await evil.enclave.send(PLANTED, evil.key, [victim.key])
            await part(meetings)

    asyncio.run(story())


def test_who_is_no_member_hears_nothing_of_it(tmp_path: Path) -> None:
    """A non-member learns nothing. The test checks every byte that c receives on its sessions with members, and every
    byte that c stores.
    """
    a, b, c = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))
    recorded: list[bytes] = []

    class Recorded(PrivPeer):
        def received(self, code: int, payload: bytes) -> None:
            recorded.append(payload)
            super().received(code, payload)

    class Recording(PrivProtocol):
        def attach(self, peer: Peer, version: int) -> PrivPeer:
            attached = Recorded(peer, self.enclave, self.node_id, self.clock, self.entropy, self.lane)
            attached.announce()
            return attached

    c.protocol = Recording(c.enclave, c.node_key.public_key, SystemClock(), SystemEntropy())

    async def story() -> list[bytes]:
        async with at_work(a, b, c):
            meetings = await met(a, b, c)
            group = await a.enclave.create_group([a.key, b.key], a.key, "planted-name-of-the-group", "planted-purpose")
            keys = [await a.enclave.send(PLANTED, a.key, [b.key]), await b.enclave.send(PLANTED, b.key, [a.key])]
            keys.append(await b.enclave.send(PLANTED, b.key, group_id=group.id))
            assert await c.enclave.fetch_missing() == 0
            await part(meetings)
            return [*keys, group.id, legacy_id([a.key, b.key])]

    ids = asyncio.run(story())
    sealed = [a.store.row("payloads", key) for key in ids[:3]]
    planted = [PLANTED, b64encode(PLANTED), b"planted-name", b"planted-purpose", *ids]
    planted += [record[-40:] for record in sealed if record is not None]
    assert len(planted) == 12
    for member in (a, b, c):
        member.close()
    capture = b"".join(recorded)
    assert len(recorded) >= 6
    stored = (c.path / "data.mdb").read_bytes()
    for text in planted:
        assert text not in capture
        assert text not in stored
    # the databases of the members hold sealed payloads, and groups without encryption
    for member in (a, b):
        content = (member.path / "data.mdb").read_bytes()
        assert PLANTED not in content
        assert b64encode(PLANTED) not in content
        assert ids[0] in content


class Confused(PrivPeer):
    """A peer that proves its key, then answers the wrong request."""

    def received(self, code: int, payload: bytes) -> None:
        if code == Code.LIST:
            self._send(Code.PAYLOAD, messages.encode_records(messages.read_list(payload).request_id, []))
        elif code == Code.GET_PAYLOAD:
            self._send(
                Code.LISTED, messages.encode_listing(messages.read_request(payload)[0], RecordListing([], 0, False))
            )
        else:
            super().received(code, payload)


class Confusing(PrivProtocol):
    def attach(self, peer: Peer, version: int) -> PrivPeer:
        attached = Confused(peer, self.enclave, self.node_id, self.clock, self.entropy, self.lane)
        attached.announce()
        return attached


@pytest.mark.parametrize("is_asked_for_payloads", [False, True])
def test_an_answer_of_the_wrong_kind_ends_the_session_and_not_the_node(
    tmp_path: Path, is_asked_for_payloads: bool
) -> None:
    victim, evil = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        host = victim.host()
        running = asyncio.create_task(victim.enclave.run(lambda: None))
        await asyncio.sleep(0)
        if is_asked_for_payloads:
            victim.enclave._asked = Everybody()  # type: ignore[assignment]
        protocol = Confusing(evil.enclave, evil.node_key.public_key, SystemClock(), SystemEntropy())
        meeting = MemoryConnection(Host(evil.node_key, [protocol]), host)
        if is_asked_for_payloads:
            await until(lambda: bool(victim.enclave.directory.links(evil.key)))
            [line] = victim.enclave.directory.links(evil.key)
            with pytest.raises(EnclaveLinkLost):
                await line.fetch([RecordLabel(RecordKind.PAYLOAD, bytes(32))])
        await meeting.wait_closed()
        assert [ending.reason for ending in host.endings] == [DisconnectReason.BREACH]
        assert not running.done()
        running.cancel()
        await asyncio.wait({running})

    asyncio.run(story())


class Everybody(set[object]):
    """A set that contains every object, as if the node had requested every answer."""

    def __contains__(self, item: object) -> bool:
        return True
