"""Tests sessions by header, and requests over an authenticated connection in process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ophion.rpc.auth.authenticator import Authenticator, named
from ophion.rpc.auth.tokens import TokenIssuer
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.schema.registry import HTTP, Registry
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.messages import Response
from ophion.rpc.transport.http.policy import HttpLimits, HttpPolicy
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.replies import Answer
from ophion.runtime.clock import ManualClock
from ophion.runtime.principal import SUBJECT
from tests.unit.rpc.wire import Context, MemoryTransport, block_number, patient

BODY = b'{"jsonrpc":"2.0","id":7,"method":"eth_blockNumber","params":[]}'
NULL_REFUSAL = {"jsonrpc": "2.0", "id": None, "error": {"code": -40100, "message": "Unauthorized"}}
REFUSAL = {**NULL_REFUSAL, "id": 7}
ISSUER = TokenIssuer()


class Application:
    plain = None

    def respond(self, request: Any) -> Response:
        return Response(404)

    def close(self) -> None:
        """Do nothing."""


class ClockedLoop(asyncio.SelectorEventLoop):
    """A loop whose timers follow a manual clock."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def time(self) -> float:
        return self._clock.monotonic()


class MethodAccess:
    """A service that requires tokens, and its only client."""

    def __init__(self, exempt: tuple[str, ...] = ()) -> None:
        self.clock = ManualClock()
        table = Registry([block_number.__rpc__]).bind(Context(), {"eth"}, HTTP)  # type: ignore[attr-defined]
        self.loop = ClockedLoop(self.clock)
        self.authenticator = Authenticator(ISSUER, table, self.loop, DispatchLimits(), self.clock, exempt)
        self.policy = HttpPolicy(
            Application(),
            HostList(["localhost"]),
            OriginList([]),
            HttpLimits(),
            PlainHeads(),
            lambda opened: True,
            lambda closed: None,
            self.authenticator,
            patient(),
        )
        self.connect()

    def connect(self) -> None:
        self.transport = MemoryTransport()
        self.connection = HttpConnection(self.policy)
        self.connection.connection_made(self.transport)

    def pass_time(self, seconds: float) -> None:
        """Advance the clock and run due timers."""
        self.clock.advance(seconds)
        self.loop.run_until_complete(asyncio.sleep(0))

    def token(self, *permissions: str) -> bytes:
        return b"Bearer " + ISSUER.issue("ali", permissions, self.clock.now()).encode()

    async def _receive(self, data: bytes) -> None:
        self.connection.data_received(data)

    def post(self, authorization: bytes | None, body: bytes = BODY, target: bytes = b"/") -> tuple[int, Any]:
        lines = [b"POST %b HTTP/1.1" % target, b"Host: localhost", b"Content-Length: %d" % len(body)]
        if authorization is not None:
            lines.append(b"Authorization: " + authorization)
        self.loop.run_until_complete(self._receive(b"\r\n".join(lines) + b"\r\n\r\n" + body))
        head, _, content = self.transport.take().partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(content)


@pytest.fixture
def service() -> Iterator[MethodAccess]:
    guarded = MethodAccess()
    yield guarded
    guarded.loop.close()


def result(answer: tuple[int, Any]) -> Any:
    status, body = answer
    assert status == 200
    return body["result"]


def test_a_token_opens_what_it_permits(service: MethodAccess) -> None:
    token = service.token("eth:blockNumber")
    for _ in range(4):  # from the second request on, the HTTP request head is in the cache
        assert result(service.post(token)) == "0x20"


def test_connections_without_a_valid_token_are_evicted_first(service: MethodAccess) -> None:
    newcomer = service.connection.idleness()
    assert service.post(service.token("eth:blockNumber"))[0] == 200
    user = service.connection.idleness()
    assert service.post(b"Bearer e30.e30.AAAA")[0] == 401
    assert user < newcomer < service.connection.idleness()
    assert service.post(service.token("eth:blockNumber"))[0] == 200
    assert service.connection.idleness() == user


def test_without_a_token_every_body_is_refused_alike(service: MethodAccess) -> None:
    for body in (BODY, b"[%b]" % BODY, b"nothing", b""):
        for header in (None, b"Basic YWxpOng=", b"Bearer", b""):
            assert service.post(header, body) == (401, NULL_REFUSAL)


def test_a_bad_token_is_refused_under_the_id_of_the_request(service: MethodAccess) -> None:
    for header in (b"Bearer x", b"Bearer  ", b"bearer a.b.c", b"Bearer " + service.token("*:*")):
        assert service.post(header) == (401, REFUSAL)


def test_a_token_without_the_permission_is_refused(service: MethodAccess) -> None:
    assert service.post(service.token("net:*")) == (401, REFUSAL)
    assert service.post(service.token()) == (401, REFUSAL)


def test_unknown_methods_are_reported_before_permissions(service: MethodAccess) -> None:
    status, body = service.post(service.token(), b'{"id":1,"method":"eth_nothing","params":[]}')
    assert (status, body["error"]["code"]) == (200, -32601)


def test_each_member_of_a_batch_is_judged(service: MethodAccess) -> None:
    body = b'[%b,{"id":8,"method":"eth_nothing","params":[]}]' % BODY
    status, answers = service.post(service.token("net:*"), body)
    assert status == 200
    assert [answer["error"]["code"] for answer in answers] == [-40100, -32601]
    status, answers = service.post(service.token("eth:*"), body)
    assert answers[0]["result"] == "0x20"


def test_a_token_that_ends_is_refused_on_the_same_connection_and_by_known_heads(service: MethodAccess) -> None:
    token = service.token("eth:*")
    for _ in range(3):
        assert result(service.post(token)) == "0x20"
    service.pass_time(301)
    assert service.post(token) == (401, REFUSAL)
    service.connect()
    assert service.post(token) == (401, REFUSAL)


def test_one_connection_serves_many_tokens_and_mixes_none(service: MethodAccess) -> None:
    good, other = service.token("eth:*"), service.token("net:*")
    for _ in range(5):
        assert result(service.post(good)) == "0x20"
        assert service.post(other) == (401, REFUSAL)
        assert service.post(None) == (401, NULL_REFUSAL)
        assert service.post(b"Bearer x") == (401, REFUSAL)


@pytest.mark.parametrize("target", [b"/?", b"/?a=b", b"/?/login"])
def test_a_request_with_a_query_needs_a_token_of_its_own(service: MethodAccess, target: bytes) -> None:
    """A proxy sends requests of many clients over one connection, so no request may use the token of an earlier
    request.
    """
    good = service.token("eth:*")
    assert result(service.post(good)) == "0x20"
    assert service.post(None, target=target) == (401, NULL_REFUSAL)
    assert service.post(b"Bearer x", target=target) == (401, REFUSAL)
    assert result(service.post(good, target=target)) == "0x20"
    service.connect()
    assert service.post(None, target=target) == (401, NULL_REFUSAL)


def test_exempt_methods_need_no_token() -> None:
    service = MethodAccess(("eth_blockNumber",))
    for header in (None, b"Bearer x", service.token()):
        assert result(service.post(header)) == "0x20"
    assert service.authenticator.may(None, "eth_blockNumber")
    assert not service.authenticator.may(None, "eth_call")
    service.loop.close()


def test_other_interfaces_use_the_same_authenticator(service: MethodAccess) -> None:
    assert service.authenticator.may(service.token("eth:*"), "eth_graphql")
    assert not service.authenticator.may(service.token("net:*"), "eth_graphql")
    assert not service.authenticator.may(None, "eth_graphql")


def test_a_socket_without_a_token_is_refused_under_the_ids_of_its_requests(service: MethodAccess) -> None:
    for header in (None, b"Basic x", b"Bearer x"):
        reply = service.authenticator.connection_session(header).handle(BODY)
        assert isinstance(reply, Answer)
        assert json.loads(reply.join()) == REFUSAL


def test_sessions_are_bounded(service: MethodAccess) -> None:
    for number in range(600):
        service.authenticator.session(service.token(f"x:{number}"))
    assert len(service.authenticator._sessions) <= 256
    assert len(service.authenticator._dispatchers) <= 64


@pytest.mark.parametrize("make", [lambda token: token[:-1], lambda token: token + b"x", lambda token: token.upper()])
def test_a_changed_token_opens_nothing(make: Callable[[bytes], bytes], service: MethodAccess) -> None:
    assert service.post(make(service.token("*:*")))[0] == 401


def test_a_head_seen_last_is_forgotten_with_its_token(service: MethodAccess) -> None:
    good, other = service.token("eth:*"), service.token("net:*")
    for _ in range(3):
        assert result(service.post(good)) == "0x20"
    assert service.post(other) == (401, REFUSAL)
    assert service.post(other) == (401, REFUSAL)
    assert result(service.post(good)) == "0x20"
    service.pass_time(301)
    assert service.post(good) == (401, REFUSAL)


def test_a_session_ends_to_the_second(service: MethodAccess) -> None:
    token = service.token("eth:*")
    assert result(service.post(token)) == "0x20"
    service.pass_time(299)
    assert result(service.post(token)) == "0x20"
    service.connection.connection_lost(None)
    service.connect()
    assert result(service.post(token)) == "0x20"
    service.pass_time(1)
    assert service.post(token) == (401, REFUSAL)


def test_a_token_that_ends_while_it_is_looked_at_opens_nothing(service: MethodAccess) -> None:
    """A token that expires during its check gives no access. Each clock reading advances the time, so the token expires
    between two readings.
    """
    for spent_s in (0.001, 0.5, 1.0, 100.0, 150.0, 299.0):
        token = service.token("eth:*")
        service.clock.advance(299.9)
        now = service.clock.now

        def later(spent_s: float = spent_s, now: Callable[[], float] = now) -> float:
            service.clock.advance(spent_s)
            return now()

        service.authenticator._now = later
        service.post(token)
        service.authenticator._now = now
        service.clock.advance(1.0)
        for _ in range(3):
            assert service.post(token) == (401, REFUSAL), spent_s
        service.pass_time(10)
        for _ in range(3):
            assert service.post(token) == (401, REFUSAL), spent_s


def test_what_was_learned_with_a_token_does_not_outlive_it_without_any_timer(service: MethodAccess) -> None:
    """The event loop is busy, so the session's timer has not run. The session is refused anyway, because another check
    has ended it.
    """
    token = service.token("eth:*")
    for _ in range(3):
        assert result(service.post(token)) == "0x20"
    service.clock.advance(301)
    assert not service.authenticator.may(token, "eth_graphql")
    assert service.post(token) == (401, REFUSAL)


def test_a_forged_token_does_not_reveal_which_methods_exist(service: MethodAccess) -> None:
    for name in (b"eth_blockNumber", b"eth_nothing", b"admin_peers", b"x"):
        body = b'{"jsonrpc":"2.0","id":7,"method":"%b","params":[]}' % name
        assert service.post(b"Bearer x", body) == (401, REFUSAL)
        status, answers = service.post(b"Bearer x", b"[%b]" % body)
        assert (status, answers) == (200, [REFUSAL])


def test_a_clock_that_was_set_is_noticed(service: MethodAccess) -> None:
    token = service.token("eth:*")
    for _ in range(2):
        assert result(service.post(token)) == "0x20"
    service.clock.wall += 301
    service.pass_time(5)
    assert service.post(token) == (401, REFUSAL)


def test_an_evicted_session_still_serves_and_still_ends(service: MethodAccess) -> None:
    token = service.token("eth:*")
    for _ in range(2):
        assert result(service.post(token)) == "0x20"
    for number in range(300):
        service.authenticator.session(service.token(f"x:{number}"))
    assert token not in service.authenticator._sessions
    assert result(service.post(token)) == "0x20"
    service.pass_time(301)
    assert service.post(token) == (401, REFUSAL)


def test_an_expired_token_permits_nothing_to_other_interfaces(service: MethodAccess) -> None:
    token = service.token("eth:*")
    assert service.authenticator.may(token, "eth_graphql")
    service.clock.advance(301)
    assert not service.authenticator.may(token, "eth_graphql")


def test_requests_with_a_token_are_made_in_the_name_of_its_user() -> None:
    received: list[str | None] = []

    def handle(body: bytes, caller: object = None) -> bytes:
        received.append(SUBJECT.get())
        return body

    assert named("ali", handle)(b"x") == b"x"
    assert received == ["ali"]
    assert SUBJECT.get() is None
