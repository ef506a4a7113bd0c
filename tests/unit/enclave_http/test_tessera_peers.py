"""Enclaves that speak the protocol of Tessera find each other, prove their keys and exchange payloads and groups."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.enclave.options import DeliveryMode
from ophion.enclave.payload_exchange import EnclaveLinkLost, EnclaveRecord, RecordKind, RecordLabel
from ophion.enclave.tessera.party_info import PartyInfo
from ophion.enclave.tessera.sealed_payloads import has_absent_boxes
from ophion.enclave_http import tessera_peers
from ophion.enclave_http.peer_application import peer_service
from ophion.enclave_http.tessera_peers import TesseraLink, TesseraPeers
from ophion.errors import EnclaveError
from ophion.primitives import rlp
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.runtime.http_client import HttpClient
from ophion.testing.enclaves import EnclaveMember, at_work, met
from ophion.testing.ports import free_ports
from ophion.testing.wait_for import until

CLOCK, ENTROPY = SystemClock(), SystemEntropy()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tessera_peers, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(tessera_peers, "_LONGEST_PAUSE_S", 0.05)
    monkeypatch.setattr(tessera_peers, "_LOOK_S", 0.05)


def private_transaction(sender: bytes, *recipients: bytes, group: bytes | None = None) -> bytes:
    """Return the RLP of a private transaction that names its sender and its recipients or its group."""
    return rlp.encode([b""] * 9 + [sender, group if group is not None else list(recipients), b"restricted"])


@asynccontextmanager
async def running(member: EnclaveMember, port: int, *others: int) -> AsyncIterator[TesseraPeers]:
    """Serve the enclave of a member for Tessera on a port, and connect to other ports."""
    urls = [f"http://127.0.0.1:{other}" for other in others]
    peers = TesseraPeers(urls, f"http://127.0.0.1:{port}", member.enclave, ENTROPY)
    service = peer_service(member.enclave, "127.0.0.1", port, CLOCK, ENTROPY, None, peers)
    is_ready = asyncio.Event()
    tasks = [asyncio.create_task(service.run(is_ready.set)), asyncio.create_task(peers.run(lambda: None))]
    await is_ready.wait()
    try:
        yield peers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def network(*members: EnclaveMember) -> AsyncIterator[list[int]]:
    """Run members that are configured with each other. Yields their ports once all have proven their keys."""
    ports = free_ports(len(members))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(at_work(*members))
        for member, port in zip(members, ports, strict=True):
            await stack.enter_async_context(running(member, port, *(other for other in ports if other != port)))
        keys = {key for member in members for key in member.enclave.keys}
        await until(
            lambda: all(
                member.enclave.directory.links(key)
                for member in members
                for key in keys.difference(member.enclave.keys)
            )
        )
        yield ports


def test_members_find_each_other_and_exchange_payloads(tmp_path: Path) -> None:
    a, b, c = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))

    async def story() -> None:
        async with network(a, b):
            for sender, recipient in ((a, b), (b, a)):
                sent = private_transaction(sender.key, recipient.key)
                key = await sender.enclave.send(sent, sender.key, [recipient.key])
                [found] = await recipient.enclave.receive_many([key])
                assert found is not None
                assert (found.payload, found.sender) == (sent, sender.key)
                assert found.group_id == legacy_id([a.key, b.key])
                assert key in recipient.late
        assert not c.late

    asyncio.run(story())


@asynccontextmanager
async def listing(member: EnclaveMember, port: int, info: PartyInfo) -> AsyncIterator[str]:
    """Serve a member as a Tessera that tells this party info. Other requests go to its own port."""
    client = HttpClient(f"http://127.0.0.1:{port}")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, path = head.split()[:2]
        [length] = [link.split()[1] for link in head.split(b"\r\n") if link.lower().startswith(b"content-length")]
        body = await reader.readexactly(int(length))
        if method == b"GET":
            status, answer = 200, info.encode_json()
        else:
            headers = {"Content-Type": "application/octet-stream"}
            reply = await client.request(method.decode(), path.decode(), body, headers)
            status, answer = reply.status, bytes(reply.body)
        writer.write(b"HTTP/1.1 %d x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (status, len(answer)))
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_a_member_is_found_through_a_configured_one(tmp_path: Path) -> None:
    a, b, c = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))

    async def story() -> None:
        port_a, port_b, port_c = free_ports(3)
        url_b, url_c = "http://b.example/", f"http://127.0.0.1:{port_c}/"
        # the second key of c is claimed, but not proven
        info = PartyInfo(url_b, ((b.key, url_b), (c.key, url_c), (bytes([9]) * 32, url_c)), ())
        async with running(b, port_b, port_a), running(c, port_c, port_b), listing(b, port_b, info) as url:
            peers = TesseraPeers([url], f"http://127.0.0.1:{port_a}", a.enclave, ENTROPY)
            task = asyncio.create_task(peers.run(lambda: None))
            await until(lambda: set(a.enclave.directory.known()) == {b.key, c.key})
            await until(lambda: peers.keys_at("127.0.0.1") == {b.key, c.key})
            assert not peers.keys_at("192.0.2.1")
            key = await a.enclave.send(private_transaction(a.key, c.key), a.key, [c.key])
            assert c.late == [key]
            assert not b.late
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(story())


def test_nothing_is_sent_to_a_member_outside_of_the_group(tmp_path: Path) -> None:
    a, b, c = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))

    async def story() -> None:
        async with network(a, b, c):
            sent = private_transaction(c.key, b.key)
            key = await c.enclave.send(sent, c.key, [b.key])
            [found] = await b.enclave.receive_many([key])
            assert found is not None
            # nothing is sent to a member that is not in the group
            assert await a.enclave.receive_many([key]) == [None]
            assert not a.late
            record = b.enclave.load(RecordLabel(RecordKind.PAYLOAD, key))
            assert record is not None
            assert has_absent_boxes(record)

    asyncio.run(story())


def test_groups_are_created_used_and_deleted(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        async with network(a, b):
            group = await a.enclave.create_group([a.key, b.key], a.key, "name", "what for")
            assert await b.enclave.group(group.id) == group
            key = await b.enclave.send(private_transaction(b.key, group=group.id), b.key, group_id=group.id)
            [found] = await a.enclave.receive_many([key])
            assert found is not None
            assert found.group_id == group.id
            await a.enclave.delete_group(group.id, a.key)
            deleted = await b.enclave.group(group.id)
            assert deleted is not None
            assert not deleted.active
            with pytest.raises(EnclaveError, match="no such group"):
                await b.enclave.send(private_transaction(b.key, group=group.id), b.key, group_id=group.id)

    asyncio.run(story())


def test_an_enclave_with_two_keys_gets_both_boxes(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2, keys=2)

    async def story() -> None:
        async with network(a, b):
            sent = private_transaction(a.key, *b.enclave.keys)
            key = await a.enclave.send(sent, a.key, b.enclave.keys)
            [found] = await b.enclave.receive_many([key])
            assert found is not None
            assert found.payload == sent

    asyncio.run(story())


def test_a_recipient_that_is_offline_gets_it_later(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1, DeliveryMode.QUEUE), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        port_a, port_b = free_ports(2)
        async with at_work(a, b), running(a, port_a, port_b):
            async with running(b, port_b, port_a):
                await until(lambda: bool(a.enclave.directory.links(b.key)))
            key = await a.enclave.send(private_transaction(a.key, b.key), a.key, [b.key])
            assert await b.enclave.receive_many([key]) == [None]
            async with running(b, port_b, port_a):
                await until(lambda: not a.enclave.status()["outbox"])
            [found] = await b.enclave.receive_many([key])
            assert found is not None

    asyncio.run(story())


def test_other_connections_are_preferred(tmp_path: Path) -> None:
    """A record over a peer connection has the boxes of all members, one over the protocol of Tessera has not."""
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        async with network(a, b):
            await met(a, b)
            await until(lambda: [link.is_fallback for link in a.enclave.directory.links(b.key)] == [False])
            key = await a.enclave.send(private_transaction(a.key, b.key), a.key, [b.key])
            record = b.enclave.load(RecordLabel(RecordKind.PAYLOAD, key))
            assert record is not None
            assert not has_absent_boxes(record)

    asyncio.run(story())


def test_a_line_sends_nothing_to_keys_outside_of_the_group(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        async with network(a, b) as ports:
            client = HttpClient(f"http://127.0.0.1:{ports[1]}/")
            link = TesseraLink(client, a.enclave, ENTROPY, f"http://127.0.0.1:{ports[0]}/", lambda: None)
            await link.introduce()
            assert link.keys == {b.key}
            other = EnclaveMember(tmp_path, 3)
            key, record = a.enclave.keyring.seal(b"text", a.key, [other.key], 1, bytes(32), bytes(80))
            assert (
                await link.push(EnclaveRecord(RecordLabel(RecordKind.PAYLOAD, key), record))
                == "no key of this enclave is a recipient"
            )
            link.close()
            with pytest.raises(EnclaveLinkLost):
                await link.push(EnclaveRecord(RecordLabel(RecordKind.PAYLOAD, key), record))
        assert not b.late

    asyncio.run(story())


def test_a_url_that_cannot_prove_its_key_gets_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    a, b, thief = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))

    async def story() -> None:
        port_a, port_thief = free_ports(2)
        thief.enclave.keys = (b.key,)  # the thief names the key of b as its own
        async with at_work(a, thief), running(thief, port_thief, port_a), running(a, port_a, port_thief):
            await until(lambda: "the URL proves no key" in caplog.text)
            assert not a.enclave.directory.links(b.key)
            with pytest.raises(EnclaveError, match="offline"):
                await a.enclave.send(private_transaction(a.key, b.key), a.key, [b.key])

    asyncio.run(story())


def test_two_nodes_do_not_make_each_other_ask_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look sends a party info, and a party info makes its receiver look at the sender."""
    monkeypatch.setattr(tessera_peers, "_LOOK_S", 10.0)
    looks = _count_looks(monkeypatch)

    async def story() -> None:
        async with network(EnclaveMember(tmp_path / "a", 1), EnclaveMember(tmp_path / "b", 2)):
            looks.clear()
            await asyncio.sleep(1)

    asyncio.run(story())
    assert len(looks) <= 4


def test_party_infos_of_any_caller_do_not_shorten_the_pause_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise forged party infos make this node dial an address in a loop, and forget a found URL at once."""
    monkeypatch.setattr(tessera_peers, "_FIRST_PAUSE_S", 30.0)
    monkeypatch.setattr(tessera_peers, "_LONGEST_PAUSE_S", 30.0)
    looks = _count_looks(monkeypatch)
    member, (port, other) = EnclaveMember(tmp_path, 1), free_ports(2)
    forged = PartyInfo(f"http://127.0.0.1:{other}/", (), ()).encode()

    async def story() -> None:
        async with running(member, port, other):
            caller = HttpClient(f"http://127.0.0.1:{port}")
            for _ in range(40):
                await caller.request("POST", "/partyinfo", forged, {"Content-Type": "application/octet-stream"})
            await asyncio.sleep(0.2)
            caller.close()

    asyncio.run(story())
    assert 1 <= len(looks) <= 2


def _count_looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    looks: list[str] = []
    introduce = TesseraLink.introduce

    async def counted(self: TesseraLink) -> PartyInfo:
        looks.append(self.name)
        return await introduce(self)

    monkeypatch.setattr(TesseraLink, "introduce", counted)
    return looks


def test_a_found_url_does_not_share_the_key_of_a_configured_one(tmp_path: Path) -> None:
    """A found enclave can pass the question for a key on to its owner, and would acknowledge payloads in its place."""
    alice, bob = EnclaveMember(tmp_path / "a", 1), EnclaveMember(tmp_path / "b", 2)

    def names() -> set[str]:
        return {getattr(link, "name", "") for link in alice.enclave.directory.links(bob.key)}

    async def story() -> None:
        port, other, offline = free_ports(3)
        async with at_work(alice, bob), running(bob, other):
            async with running(alice, port, other) as peers:
                await until(lambda: names() == {f"http://127.0.0.1:{other}/"})
                peers._add(f"http://localhost:{other}/")
                await asyncio.sleep(0.3)
                assert names() == {f"http://127.0.0.1:{other}/"}
            async with running(alice, port, offline) as peers:
                peers._add(f"http://localhost:{other}/")
                await until(lambda: names() == {f"http://localhost:{other}/"})
                peers._configured |= {f"http://127.0.0.1:{other}/"}
                peers._add(f"http://127.0.0.1:{other}/")
                await until(lambda: names() == {f"http://127.0.0.1:{other}/"})

    asyncio.run(story())
