"""Enclaves whose nodes are not peers exchange payloads and groups over HTTP, and refuse requests of unknown senders."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.enclave.interface import MAX_PAYLOAD_BYTES
from ophion.enclave.options import DeliveryMode
from ophion.enclave.remote.http import HttpClient
from ophion.enclave_http import http_peers
from ophion.enclave_http.envelope import Envelope, open_answer, seal_request
from ophion.enclave_http.http_peers import HttpEnclavePeers
from ophion.enclave_http.peer_application import peer_service
from ophion.errors import EnclaveError
from ophion.native.enclave import EnclaveKeyring
from ophion.peers.priv import messages
from ophion.peers.priv.messages import ListRequest
from ophion.primitives import rlp
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.runtime.memory_budget import MemoryBudget
from ophion.testing.enclaves import EnclaveMember, at_work
from ophion.testing.wait_for import until

SECRET = b"the price is 47 and nobody else shall know"
CLOCK, ENTROPY = SystemClock(), SystemEntropy()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_peers, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(http_peers, "_LONGEST_PAUSE_S", 0.05)


@asynccontextmanager
async def reached(member: EnclaveMember, port: int = 0, shared: SharedResources | None = None) -> AsyncIterator[str]:
    """Serve the enclave of a member over HTTP and yield its URL."""
    service = peer_service(member.enclave, "127.0.0.1", port, CLOCK, ENTROPY, shared)
    is_ready = asyncio.Event()
    task = asyncio.create_task(service.run(is_ready.set))
    await is_ready.wait()
    try:
        yield f"http://127.0.0.1:{service.port}"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def looking(member: EnclaveMember, *urls: str) -> AsyncIterator[None]:
    """Run the enclave of a member. The enclave connects to other enclaves over HTTP."""
    task = asyncio.create_task(HttpEnclavePeers(urls, member.enclave, CLOCK, ENTROPY).run(lambda: None))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def knows(member: EnclaveMember, *others: EnclaveMember) -> bool:
    keys = [key for other in others for key in other.enclave.keys]
    return all(member.enclave.directory.links(key) for key in keys)


def test_payloads_and_groups_reach_a_member_that_is_no_peer(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1, keys=2), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        async with at_work(a, b), reached(a) as url_a, reached(b) as url_b, looking(a, url_b), looking(b, url_a):
            await until(lambda: knows(a, b) and knows(b, a))
            for sender, recipient in ((a, b), (b, a)):
                key = await sender.enclave.send(SECRET, sender.key, [recipient.key])
                [found] = await recipient.enclave.receive_many([key])
                assert found is not None
                assert (found.payload, found.sender) == (SECRET, sender.key)
            # send 100 payloads at once from both keys of member a, then one payload of the maximum size
            keys = await asyncio.gather(*(a.enclave.send(SECRET, a.enclave.keys[n % 2], [b.key]) for n in range(100)))
            keys.append(await a.enclave.send(bytes(MAX_PAYLOAD_BYTES), a.key, [b.key]))
            assert None not in await b.enclave.receive_many(keys)
            group = await a.enclave.create_group([a.key, b.key], a.key, "name", "what for")
            assert await b.enclave.group(group.id) == group
            key = await b.enclave.send(SECRET, b.key, group_id=group.id)
            [found] = await a.enclave.receive_many([key])
            assert found is not None
            assert found.group_id == group.id
            await a.enclave.delete_group(group.id, a.key)
            deleted = await b.enclave.group(group.id)
            assert deleted is not None
            assert not deleted.active

    asyncio.run(story())


def test_who_is_away_gets_it_when_it_is_back(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1, DeliveryMode.QUEUE), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        async with at_work(a, b):
            async with reached(b) as url:
                port = int(url.rpartition(":")[2])
                async with looking(a, url):
                    await until(lambda: knows(a, b))
            assert not knows(a, b), "whoever stops looking knows nobody"
            key = await a.enclave.send(SECRET, a.key, [b.key])
            async with looking(a, url):
                await asyncio.sleep(0.05)
                assert await b.enclave.receive_many([key]) == [None]
                async with reached(b, port):
                    await until(lambda: not a.enclave.status()["outbox"])
            [found] = await b.enclave.receive_many([key])
            assert found is not None

    asyncio.run(story())


def test_a_member_that_lost_its_payloads_gets_them_back(tmp_path: Path) -> None:
    """The member connects to the other member by URL, and need not be reachable itself."""
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2, keys=2)

    async def story() -> None:
        async with at_work(a, b), reached(a) as url_a, looking(b, url_a):
            async with reached(b) as url_b, looking(a, url_b):
                await until(lambda: knows(a, b))
                group = await a.enclave.create_group([a.key, b.enclave.keys[1]], a.key)
                keys = [
                    await a.enclave.send(SECRET, a.key, [b.key]),
                    await a.enclave.send(SECRET, a.key, group_id=group.id),
                ]
            b.store.clear_rows(["payloads"])
            assert await b.enclave.receive_many(keys) == [None, None]
            await until(lambda: knows(b, a))
            assert await b.enclave.fetch_missing() == 2
            assert None not in await b.enclave.receive_many(keys)

    asyncio.run(story())


def test_a_peer_that_claims_a_key_without_proof_is_sent_nothing(tmp_path: Path) -> None:
    """A server that claims b's key, but cannot open boxes for b, gets no payloads."""
    a, b, evil = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))

    async def story() -> None:
        async with at_work(a, evil), reached(evil) as url:
            # the attacker claims the key of member b without a proof
            evil.enclave.keys = (b.key,)
            async with looking(a, url):
                await asyncio.sleep(0.1)
                assert not knows(a, b)
            with pytest.raises(EnclaveError):
                await a.enclave.send(SECRET, a.key, [b.key])

    asyncio.run(story())


def test_strangers_get_nothing_and_change_nothing(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)
    ring = EnclaveKeyring([b"\x77" * 32])
    [unknown_key] = ring.public_keys

    async def story() -> None:
        async with at_work(a), reached(a) as url:
            key = await a.enclave.send(SECRET, a.key, [])
            client = HttpClient(url)

            async def ask(path: str, message: bytes) -> tuple[int, bytes | None]:
                request = seal_request(ring, ENTROPY, unknown_key, a.key, path.encode(), message)
                answer = await client.post(path, request.encode(), "application/json")
                if answer.status != 200:
                    return answer.status, None
                return 200, open_answer(ring, request, Envelope.decode(bytes(answer.body)))

            # the member lists and returns no payloads of other recipients
            status, text = await ask("/list", messages.encode_list(ListRequest(1, a.key, 0)))
            assert text is not None
            assert (status, messages.read_listing(text)[1].labels) == (200, [])
            [(_, label)] = a.enclave.arrivals(a.key, 0, 10)[-1:]
            assert label.id == key
            status, text = await ask("/getPayload", messages.encode_request(1, [label]))
            assert text is not None
            assert messages.read_records(text)[1] == []
            # send bytes that are no message, bytes that are no envelope and a box that cannot be opened, then use an
            # unknown path
            assert await ask("/list", b"\xff") == (400, None)
            assert (await client.post("/push", b"{}", "application/json")).status == 400
            other = seal_request(ring, ENTROPY, unknown_key, b.key, b"/push", b"\xc0").encode()
            assert (await client.post("/push", other, "application/json")).status == 403
            assert (await client.post("/send", b"{}", "application/json")).status == 404
            assert (await client.get("/push")).status == 405
            assert (await client.get("/upcheck")).body == b"I'm up!"
            assert json.loads((await client.get("/partyinfo")).body).keys() == {"keys"}
            # send a payload with another sender key than the key that delivers the payload
            members = [a.key, b.key]
            _, record = b.enclave.keyring.seal(b"text", b.key, members, 2, legacy_id(members), ENTROPY.token(80))
            status, text = await ask("/push", rlp.encode([record]))
            assert text is not None
            [ack] = messages.read_acks(text)
            assert ack.reason == "its sender's key is not proven"
            client.close()

    asyncio.run(story())
    assert len(a.store.rows("payloads", b"", b"", 10)) == 1


def test_what_others_send_in_the_name_of_a_member_does_not_use_up_its_share(tmp_path: Path) -> None:
    """A member's key is public, so other senders can forge requests under this key.

    Forged requests do not delay the member's own requests.
    """
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        ample = SharedResources(
            MemoryBudget(1024 * 1024 * 1024)
        )  # use a large memory budget, so that no payload is evicted
        async with (
            at_work(a, b),
            reached(a, shared=ample) as url_a,
            reached(b) as url_b,
            looking(a, url_b),
            looking(b, url_a),
        ):
            await until(lambda: knows(a, b) and knows(b, a))
            forged = Envelope(b.key, a.key, bytes(24), bytes(MAX_PAYLOAD_BYTES)).encode()
            # these requests are four times as many as the rate limit admits in 15 seconds
            count = 100 * 1024 * 1024 // len(forged)

            async def send_forged() -> int:
                client = HttpClient(url_a)
                try:
                    return (await client.post("/push", forged, "application/json")).status
                finally:
                    client.close()

            assert set(await asyncio.gather(*(send_forged() for _ in range(count)))) == {403}
            await b.enclave.send(SECRET, b.key, [a.key])

    asyncio.run(story())
