"""Sessions by header, and requests over a guarded connection in process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from ophion.rpc.access import HostList, OriginList
from ophion.rpc.auth.gate import Gate
from ophion.rpc.auth.tokens import TokenIssuer
from ophion.rpc.dispatcher import Answer, DispatchLimits
from ophion.rpc.http_connection import HttpConnection, HttpLimits, HttpPolicy, PlainHeads
from ophion.rpc.http_wire import Response
from ophion.rpc.registry import HTTP, Registry
from ophion.runtime.clock import ManualClock
from tests.unit.rpc.wire import Context, MemoryTransport, block_number

BODY = b'{"jsonrpc":"2.0","id":7,"method":"eth_blockNumber","params":[]}'
NULL_REFUSAL = {"jsonrpc": "2.0", "id": None, "error": {"code": -40100, "message": "Unauthorized"}}
REFUSAL = {**NULL_REFUSAL, "id": 7}
ISSUER = TokenIssuer()


class Application:
    plain = None

    def respond(self, request: Any) -> Response:
        return Response(404)

    def close(self) -> None:
        """Nothing to give back."""


class Guarded:
    """A service that asks for tokens, and its only client."""

    def __init__(self, exempt: tuple[str, ...] = ()) -> None:
        self.clock = ManualClock()
        table = Registry([block_number.__rpc__]).bind(Context(), {"eth"}, HTTP)  # type: ignore[attr-defined]
        loop = asyncio.new_event_loop()
        self.gate = Gate(ISSUER, table, loop, DispatchLimits(), self.clock, exempt)
        loop.close()
        self.policy = HttpPolicy(
            Application(),
            HostList(["localhost"]),
            OriginList([]),
            HttpLimits(),
            PlainHeads(),
            lambda opened: True,
            lambda closed: None,
            self.gate,
        )
        self.connect()

    def connect(self) -> None:
        self.transport = MemoryTransport()
        self.connection = HttpConnection(self.policy)
        self.connection.connection_made(self.transport)

    def token(self, *permissions: str) -> bytes:
        return b"Bearer " + ISSUER.issue("ali", permissions, self.clock.now()).encode()

    def post(self, authorization: bytes | None, body: bytes = BODY) -> tuple[int, Any]:
        lines = [b"POST / HTTP/1.1", b"Host: localhost", b"Content-Length: %d" % len(body)]
        if authorization is not None:
            lines.append(b"Authorization: " + authorization)
        self.connection.data_received(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        head, _, content = self.transport.take().partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(content)


def result(answer: tuple[int, Any]) -> Any:
    status, body = answer
    assert status == 200
    return body["result"]


def test_a_token_opens_what_it_permits() -> None:
    service = Guarded()
    token = service.token("eth:blockNumber")
    for _ in range(4):  # from the second on the head is known
        assert result(service.post(token)) == "0x20"


def test_without_a_token_every_body_is_refused_alike() -> None:
    service = Guarded()
    for body in (BODY, b"[%b]" % BODY, b"nothing", b""):
        for header in (None, b"Basic YWxpOng=", b"Bearer", b""):
            assert service.post(header, body) == (401, NULL_REFUSAL)


def test_a_bad_token_is_refused_under_the_id_of_the_request() -> None:
    service = Guarded()
    for header in (b"Bearer x", b"Bearer  ", b"bearer a.b.c", b"Bearer " + service.token("*:*")):
        assert service.post(header) == (401, REFUSAL)


def test_a_token_without_the_permission_is_refused() -> None:
    service = Guarded()
    assert service.post(service.token("net:*")) == (401, REFUSAL)
    assert service.post(service.token()) == (401, REFUSAL)


def test_unknown_methods_are_reported_before_permissions() -> None:
    service = Guarded()
    status, body = service.post(service.token(), b'{"id":1,"method":"eth_nothing","params":[]}')
    assert (status, body["error"]["code"]) == (200, -32601)


def test_each_member_of_a_batch_is_judged() -> None:
    service = Guarded()
    body = b'[%b,{"id":8,"method":"eth_nothing","params":[]}]' % BODY
    status, answers = service.post(service.token("net:*"), body)
    assert status == 200
    assert [answer["error"]["code"] for answer in answers] == [-40100, -32601]
    status, answers = service.post(service.token("eth:*"), body)
    assert answers[0]["result"] == "0x20"


def test_a_token_that_ends_is_refused_on_the_same_connection_and_by_known_heads() -> None:
    service = Guarded()
    token = service.token("eth:*")
    for _ in range(3):
        assert result(service.post(token)) == "0x20"
    service.clock.advance(301)
    assert service.post(token) == (401, REFUSAL)
    service.connect()
    assert service.post(token) == (401, REFUSAL)


def test_one_connection_serves_many_tokens_and_mixes_none() -> None:
    service = Guarded()
    good, other = service.token("eth:*"), service.token("net:*")
    for _ in range(5):
        assert result(service.post(good)) == "0x20"
        assert service.post(other) == (401, REFUSAL)
        assert service.post(None) == (401, NULL_REFUSAL)
        assert service.post(b"Bearer x") == (401, REFUSAL)


def test_exempt_methods_need_no_token() -> None:
    service = Guarded(("eth_blockNumber",))
    for header in (None, b"Bearer x", service.token()):
        assert result(service.post(header)) == "0x20"
    assert service.gate.may(None, "eth_blockNumber")
    assert not service.gate.may(None, "eth_call")


def test_other_interfaces_ask_the_same_gate() -> None:
    service = Guarded()
    assert service.gate.may(service.token("eth:*"), "eth_graphql")
    assert not service.gate.may(service.token("net:*"), "eth_graphql")
    assert not service.gate.may(None, "eth_graphql")


def test_a_socket_without_a_token_is_refused_under_the_ids_of_its_requests() -> None:
    service = Guarded()
    for header in (None, b"Basic x", b"Bearer x"):
        reply = service.gate.connection_session(header).handle(BODY)
        assert isinstance(reply, Answer)
        assert json.loads(reply.join()) == REFUSAL


def test_sessions_are_bounded() -> None:
    service = Guarded()
    for number in range(600):
        service.gate.session(service.token(f"x:{number}"))
    assert len(service.gate._sessions) <= 256
    assert len(service.gate._dispatchers) <= 64


@pytest.mark.parametrize("make", [lambda token: token[:-1], lambda token: token + b"x", lambda token: token.upper()])
def test_a_changed_token_opens_nothing(make: Callable[[bytes], bytes]) -> None:
    service = Guarded()
    assert service.post(make(service.token("*:*")))[0] == 401


def test_a_head_seen_last_is_forgotten_with_its_token() -> None:
    service = Guarded()
    good, other = service.token("eth:*"), service.token("net:*")
    for _ in range(3):
        assert result(service.post(good)) == "0x20"
    assert service.post(other) == (401, REFUSAL)
    assert service.post(other) == (401, REFUSAL)
    assert result(service.post(good)) == "0x20"
    service.clock.advance(301)
    assert service.post(good) == (401, REFUSAL)
