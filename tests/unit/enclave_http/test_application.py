"""Tests the enclave's HTTP interface through the calls of tools for a remote enclave (privacy.md 5)."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.enclave.interface import MAX_PAYLOAD_BYTES
from ophion.enclave_http.application import enclave_service
from ophion.testing.enclaves import EnclaveMember
from tests.unit.rpc.endpoints.test_services import exchange, serving

TEXT = b"aW5uZXI="
"""A payload as clients send it: already base64."""


class Tool:
    """A client that uses only the API of privacy.md 5."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        answer = await exchange(self.port, "\r\n".join([*lines, "", ""]).encode() + body)
        head, _, content = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), content

    async def post(self, path: str, **members: Any) -> tuple[int, Any]:
        body = json.dumps({name.rstrip("_"): value for name, value in members.items()}).encode()
        status, content = await self.ask("POST", path, body, Content_Type="application/json")
        return status, json.loads(content)


def told(member: EnclaveMember, story: Callable[[Tool], Awaitable[None]]) -> None:
    async def main() -> None:
        service = enclave_service(member.enclave, "127.0.0.1", 0, ("localhost",))
        await serving(service, lambda: story(Tool(service.port)))

    asyncio.run(main())


def show(value: bytes) -> str:
    return b64encode(value).decode()


def test_a_payload_is_sent_and_received(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1, keys=2)
    a, b = (show(key) for key in member.enclave.keys)
    group = show(legacy_id(member.enclave.keys))

    async def story(tool: Tool) -> None:
        assert await tool.ask("GET", "/upcheck") == (200, b"I'm up!")
        status, answer = await tool.post("/send", payload=show(TEXT), from_=a, to=[b])
        assert status == 200
        expected = {"payload": show(TEXT), "privacyGroupId": group, "senderKey": a}
        for to in (None, a, b):
            assert await tool.post("/receive", key=answer["key"], to=to) == (200, expected)
        unknown_key = show(b"\7" * 32)
        assert await tool.post("/receive", key=answer["key"], to=unknown_key) == (
            404,
            {"error": "EnclavePayloadNotFound"},
        )
        assert await tool.post("/receive", key=unknown_key) == (404, {"error": "EnclavePayloadNotFound"})
        _, [found] = await tool.post("/findPrivacyGroup", addresses=[b, a])
        assert found["type"] == "LEGACY"
        assert found["members"] == [b, a]
        assert await tool.ask("GET", "/groups/legacy") == (200, json.dumps([found], separators=(",", ":")).encode())

    told(member, story)


def test_raw_payloads_travel_with_headers(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1, keys=2)
    a, b = (show(key) for key in member.enclave.keys)

    async def story(tool: Tool) -> None:
        status, key = await tool.ask("POST", "/sendraw", TEXT, c11n_from=a, c11n_to=f"{b}")
        assert status == 200
        assert await tool.ask("POST", "/receiveraw", b"", c11n_key=key.decode()) == (200, TEXT)
        assert (await tool.ask("POST", "/receiveraw", b""))[0] == 400

    told(member, story)


def test_groups_live_and_end(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1, keys=2)
    a, b = (show(key) for key in member.enclave.keys)

    async def story(tool: Tool) -> None:
        status, group = await tool.post("/createPrivacyGroup", addresses=[a, b], from_=a, name="n", description="d")
        assert status == 200
        assert {**group, "privacyGroupId": ""} == {
            "privacyGroupId": "",
            "name": "n",
            "description": "d",
            "type": "PANTHEON",
            "members": [a, b],
        }
        group_id = group["privacyGroupId"]
        assert await tool.post("/retrievePrivacyGroup", privacyGroupId=group_id) == (200, group)
        assert await tool.post("/findPrivacyGroup", addresses=[a, b]) == (200, [group])
        status, sent = await tool.post("/send", payload=show(TEXT), from_=b, privacyGroupId=group_id)
        assert status == 200
        _, received = await tool.post("/receive", key=sent["key"])
        assert (received["privacyGroupId"], received["senderKey"]) == (group_id, b)
        assert await tool.post("/deletePrivacyGroup", privacyGroupId=group_id, from_=a) == (200, group_id)
        missing = (404, {"error": "PrivacyGroupNotFound"})
        assert await tool.post("/retrievePrivacyGroup", privacyGroupId=group_id) == missing
        assert await tool.post("/deletePrivacyGroup", privacyGroupId=group_id, from_=a) == missing
        assert await tool.post("/send", payload=show(TEXT), from_=a, privacyGroupId=group_id) == missing
        assert await tool.post("/findPrivacyGroup", addresses=[a, b]) == (200, [])
        seeded = await tool.post("/createPrivacyGroup", addresses=[a], from_=a, seed=show(b"s" * 20))
        assert await tool.post("/createPrivacyGroup", addresses=[a], from_=a, seed=show(b"s" * 20)) == seeded

    told(member, story)


@pytest.mark.parametrize(
    ("path", "members", "status", "code"),
    [
        ("/send", {"payload": "!"}, 400, "InvalidPayload"),
        ("/send", {}, 400, "InvalidPayload"),
        ("/send", {"payload": "AAAA", "to": ["AAAA"]}, 400, "EnclaveDecodePublicKey"),
        ("/send", {"payload": "AAAA", "to": [show(b"\7" * 32)]}, 500, "NodeMissingPeerUrl"),
        ("/send", {"payload": "AAAA", "to": [show(bytes(32))]}, 500, "EnclaveDecodePublicKey"),
        ("/send", {"payload": "AAAA", "from": show(b"\7" * 32)}, 500, "EnclaveNoMatchingPrivateKey"),
        ("/send", {"payload": show(bytes(MAX_PAYLOAD_BYTES * 4 // 3 + 9))}, 500, "InvalidPayload"),
        ("/receive", {}, 400, "EnclaveDecodePublicKey"),
        ("/createPrivacyGroup", {"addresses": [show(b"\7" * 32)]}, 500, "CreatePrivacyGroupShouldIncludeSelf"),
        ("/deletePrivacyGroup", {}, 400, "EnclaveDecodePublicKey"),
        ("/retrievePrivacyGroup", {"privacyGroupId": show(bytes(32))}, 404, "PrivacyGroupNotFound"),
        ("/findPrivacyGroup", {"addresses": 7}, 400, "EnclaveDecodePublicKey"),
    ],
)
def test_refusals_have_a_word(tmp_path: Path, path: str, members: dict[str, Any], status: int, code: str) -> None:
    async def story(tool: Tool) -> None:
        assert await tool.post(path, **members) == (status, {"error": code})

    told(EnclaveMember(tmp_path, 1), story)


def test_what_is_no_request_is_refused(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)

    async def story(tool: Tool) -> None:
        for body in (b"", b"[]", b"7", b"{", b"\xff", b"[" * 10_000):
            assert await tool.ask("POST", "/send", body) == (400, b'{"error":"InvalidPayload"}')
        assert (await tool.ask("GET", "/send"))[0] == 405
        assert (await tool.ask("GET", "/other"))[0] == 404
        assert (await tool.ask("POST", "/other"))[0] == 404
        assert (await tool.ask("POST", "/send", bytes(8 * 1024 * 1024)))[0] == 413
        assert await tool.ask("GET", "/peercount") == (200, b"0")
        assert await tool.ask("GET", "/knownnodes") == (200, b"[]")
        assert json.loads((await tool.ask("GET", "/keys"))[1]) == {"keys": [{"key": show(member.key)}]}

    told(member, story)


def test_a_form_has_few_values(tmp_path: Path) -> None:
    async def story(tool: Tool) -> None:
        for filling in (b"[]," * 800_000, b'{"a":0},' * 300_000, (b"[" * 900 + b"]" * 900 + b",") * 2):
            body = b'{"payload":"QUFBQQ==","x":[%b0]}' % filling
            assert await tool.ask("POST", "/send", body) == (400, b'{"error":"InvalidPayload"}')

    told(EnclaveMember(tmp_path, 1), story)


def test_long_payloads_that_come_at_once_take_turns(tmp_path: Path) -> None:
    """Each payload is opened or sealed on the event loop, and other tasks run between two payloads."""
    member = EnclaveMember(tmp_path, 1)
    seal, begun = member.enclave.send_text, list[int]()
    turns = 0

    async def counted(*args: Any, **options: Any) -> bytes:
        begun.append(turns)
        return await seal(*args, **options)

    member.enclave.send_text = counted  # type: ignore[method-assign]

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def story(tool: Tool) -> None:
        counting = asyncio.create_task(count())
        answers = await asyncio.gather(*(tool.post("/send", payload=show(TEXT * 10_000)) for _ in range(8)))
        counting.cancel()
        assert [status for status, _ in answers] == [200] * 8
        assert len(set(begun)) == 8

    told(member, story)
