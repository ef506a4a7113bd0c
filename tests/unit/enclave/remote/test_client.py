"""A node uses the enclave of another Ophion over real HTTP, with and without TLS."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from ophion.enclave.group_ids import legacy_id
from ophion.enclave.interface import EnclaveUnreachable, OpenedPayload
from ophion.enclave.remote.client import RemoteEnclave
from ophion.enclave.remote.http import HttpClient
from ophion.enclave_http.application import EnclaveApplication, enclave_service
from ophion.errors import EnclaveError
from ophion.rpc.tls.certificates import TlsSettings, client_context, server_context
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.policy import HttpLimits
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.origins import OriginList
from ophion.runtime.eager_coroutine import driven
from ophion.testing.enclaves import EnclaveMember
from ophion.testing.ports import free_ports
from tests.unit.rpc.endpoints.test_services import serving
from tests.unit.rpc.tls.test_certificates import identity, pem_file

PAYLOAD = b"\xc3abc and some more bytes \xff"


def told(member: EnclaveMember, story: Callable[[RemoteEnclave], Awaitable[None]]) -> None:
    async def main() -> None:
        service = enclave_service(member.enclave, "127.0.0.1", 0, ("*",))

        async def with_client() -> None:
            client = HttpClient(f"http://127.0.0.1:{service.port}", timeout_s=10)
            await story(RemoteEnclave(client, member.key))
            client.close()

        await serving(service, with_client)

    asyncio.run(main())


def test_both_enclaves_look_alike(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1, keys=2)
    a, b = member.enclave.keys

    async def story(outer: RemoteEnclave) -> None:
        key = await outer.send(PAYLOAD, a, [b])
        expected = OpenedPayload(PAYLOAD, legacy_id([a, b]), a)
        assert await outer.receive_many([key, bytes(32)]) == [expected, None]
        assert await member.enclave.receive_many([key]) == [expected]
        group = await outer.create_group([a, b], a, "n", "d")
        assert await outer.group(group.id) == group == await member.enclave.group(group.id)
        assert group in await outer.find_groups([b, a])
        key = await outer.send(PAYLOAD, a, group_id=group.id)
        assert await outer.receive_many([key] * 50) == [OpenedPayload(PAYLOAD, group.id, a)] * 50
        assert await outer.delete_group(group.id, a) == group.id
        assert await outer.group(group.id) is None
        assert await outer.send(PAYLOAD, a) != key

    told(member, story)


def test_without_a_key_the_enclave_tries_all_its_keys(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1, keys=2)
    a, b = member.enclave.keys

    async def story(outer: RemoteEnclave) -> None:
        for_tenants = RemoteEnclave(outer._client, None)
        keys = [await for_tenants.send(PAYLOAD, one, [one]) for one in (a, b)]
        opened = await for_tenants.receive_many(keys)
        assert [one.sender for one in opened if one is not None] == [a, b]
        await for_tenants._look()
        assert for_tenants.status()["keys"] == []

    told(member, story)


def test_the_inner_text_is_what_other_members_expect(tmp_path: Path) -> None:
    """On the wire, a payload is base64 of base64. The enclave stores the inner base64 text."""
    member = EnclaveMember(tmp_path, 1)

    async def story(outer: RemoteEnclave) -> None:
        key = await outer.send(b"rlp", member.key)
        [opened] = member.enclave.open_many([key])
        assert opened is not None
        assert opened[0] == b"cmxw"

    told(member, story)


def test_refusals_keep_their_word(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)

    async def story(outer: RemoteEnclave) -> None:
        for work, code in (
            (outer.send(PAYLOAD, member.key, [b"\7" * 32]), "NodeMissingPeerUrl"),
            (outer.send(PAYLOAD, b"\7" * 32), "EnclaveNoMatchingPrivateKey"),
            (outer.create_group([b"\7" * 32], member.key), "CreatePrivacyGroupShouldIncludeSelf"),
            (outer.delete_group(bytes(32), member.key), "PrivacyGroupNotFound"),
        ):
            with pytest.raises(EnclaveError) as refused:
                await work
            assert refused.value.code == code

    told(member, story)


def test_an_offline_enclave_has_its_own_error(tmp_path: Path) -> None:
    async def main() -> None:
        [port] = free_ports(1)
        outer = RemoteEnclave(HttpClient(f"http://127.0.0.1:{port}", timeout_s=5), b"\7" * 32)
        with pytest.raises(EnclaveUnreachable):
            await outer.receive_many([bytes(32), bytes(32)])
        assert outer.status()["isUp"] is False

    asyncio.run(main())


def _plain(status: int, body: str) -> bytes:
    """Return a response in Tessera's format."""
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


ANSWERS = [
    (b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot there", None),
    (b'HTTP/1.1 500 No\r\nContent-Length: 34\r\n\r\n{"error":"EnclavePayloadNotFound"}', None),
    (_plain(500, "No suitable recipient keys found to decrypt payload for : %s" % ("A" * 43 + "=")), None),
    (_plain(200, '{"payload":"Y21GdWVRPT0=","senderKey":"%s"}' % ("A" * 43 + "=")), None),
    (_plain(200, '{"payload":"Y21GdWVRPT0=","privacyGroupId":"","senderKey":"AAAA"}'), None),
    (_plain(200, '{"payload":"%%%","privacyGroupId":"x"}'), None),
    (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", EnclaveUnreachable),
    (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\nmore", EnclaveUnreachable),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", EnclaveUnreachable),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnope", EnclaveUnreachable),
    (b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\nnope", EnclaveUnreachable),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf", EnclaveUnreachable),
    (b"no HTTP at all\r\n\r\n", EnclaveUnreachable),
    (b"", EnclaveUnreachable),
]


@pytest.mark.parametrize(("answer", "outcome"), ANSWERS)
def test_whatever_a_server_says_is_a_payload_none_or_no_answer(answer: bytes, outcome: type[Exception] | None) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        outer = RemoteEnclave(HttpClient(f"http://127.0.0.1:{port}", timeout_s=5), b"\7" * 32)
        if outcome is None:
            assert await outer.receive_many([bytes(32)]) == [None]
        else:
            with pytest.raises(outcome):
                await outer.receive_many([bytes(32)])
        server.close()

    asyncio.run(main())


def test_a_question_may_begin_outside_of_any_task(tmp_path: Path) -> None:
    """Requests to the enclave also work without a task, because handlers run directly in the loop step of their
    request.
    """
    member = EnclaveMember(tmp_path, 1)

    async def story(outer: RemoteEnclave) -> None:
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[asyncio.Task[object]] = loop.create_future()

        def begin() -> None:
            try:
                begun.set_result(driven(outer.find_groups([member.key]), loop))
            except RuntimeError as error:
                begun.set_exception(error)

        loop.call_soon(begin)
        assert await (await begun) == []

    told(member, story)


def test_a_long_list_of_payloads_leaves_time_for_other_requests() -> None:
    """A node that catches up requests thousands of payloads. A client's transaction does not wait for all of them."""

    async def main() -> None:
        is_free, begun = asyncio.Event(), asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked = await reader.readuntil(b"\r\n\r\n")
            if b"/receive" in asked:
                begun.set()
                await is_free.wait()
            writer.write(_plain(404 if b"/receive" in asked else 200, "I'm up!"))
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = HttpClient(f"http://127.0.0.1:{port}", timeout_s=20)
        reading = asyncio.create_task(RemoteEnclave(client, b"\7" * 32).receive_many([bytes(32)] * 64))
        await begun.wait()
        assert (await client.get("/upcheck")).status == 200
        is_free.set()
        assert await reading == [None] * 64
        client.close()
        server.close()

    asyncio.run(main())


def test_tls_with_the_known_certificate_of_the_enclave_and_no_other(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)
    key, certificate = identity("enclave")
    store = pem_file(tmp_path / "store.pem", key, certificate)
    pin = hashlib.sha256(certificate.public_bytes(Encoding.DER)).digest()
    tls = server_context(TlsSettings("--x-keystore-file", store))

    async def main() -> None:
        service = HttpService(
            "Enclave service",
            "127.0.0.1",
            0,
            HostList(("*",)),
            OriginList(()),
            HttpLimits(),
            lambda loop: EnclaveApplication(member.enclave, loop),
            tls,
        )

        async def story() -> None:
            context = client_context(TlsSettings("--x", None), is_pinned=True)
            url = f"https://127.0.0.1:{service.port}"
            outer = RemoteEnclave(HttpClient(url, context, pin, timeout_s=10), member.key)
            sent = await outer.send(PAYLOAD, member.key)
            assert (await outer.receive_many([sent]))[0] is not None
            other = RemoteEnclave(HttpClient(url, context, bytes(32), timeout_s=10), member.key)
            with pytest.raises(EnclaveUnreachable, match="not the known one"):
                await other.receive_many([sent])
            judged = client_context(TlsSettings("--x", None), is_pinned=False)
            with pytest.raises(EnclaveUnreachable):
                await RemoteEnclave(HttpClient(url, judged, timeout_s=10), member.key).receive_many([sent])

        await serving(service, story)

    asyncio.run(main())
