"""Tests HTTP/1.1 connections in process: input in any pieces, and the output."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import weakref
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.transport.connection_slots import BUSY
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.messages import Request, Response
from ophion.rpc.transport.http.policy import HttpLimits, HttpPolicy, Result
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.replies import PendingReply, Reply
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.memory_budget import MemoryBudget
from tests.unit.rpc.wire import Context, MemoryTransport, dispatcher, patient

BLOCK_NUMBER = b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":"0x20"}'
WAIT = b'{"jsonrpc":"2.0","id":9,"method":"eth_wait","params":[]}'


class Echo:
    """An application that returns its input."""

    def __init__(self, dispatch: Dispatcher) -> None:
        self.plain: Callable[[bytes], Reply] | None = dispatch.handle

    def respond(self, request: Request) -> Result:
        return Response(404, (request.method + b" " + request.path + b"?" + request.query,))

    def close(self) -> None:
        """Do nothing."""


class Client:
    """One connection without a socket."""

    def __init__(self, context: Context, **options: Any) -> None:
        limits = HttpLimits(**options.pop("limits", {}))
        self.heads = options.pop("heads", None) or PlainHeads()
        self.transport = MemoryTransport()
        self.shared = options.pop("shared", None) or patient()
        self.open: list[HttpConnection] = []
        policy = HttpPolicy(
            Echo(dispatcher(context, asyncio.get_running_loop())),
            HostList(options.pop("hosts", ["localhost", "127.0.0.1"])),
            OriginList(options.pop("origins", [])),
            limits,
            self.heads,
            options.pop("opened", lambda connection: True),
            lambda connection: None,
            shared=self.shared,
        )
        self.connection = HttpConnection(policy)
        self.connection.connection_made(self.transport)

    def send(self, data: bytes) -> bytes:
        self.connection.data_received(data)
        return self.transport.take()

    async def sent(self, data: bytes) -> bytes:
        """Send data, and return the output after all time slices. A slice that ends on a busy machine continues some
        iterations of the event loop later.
        """
        self.connection.data_received(data)
        idle = 0
        while idle < 10:
            await asyncio.sleep(0)
            idle = 0 if len(self.shared.scheduler) else idle + 1
        return self.transport.take()

    def post(self, body: bytes = BLOCK_NUMBER, *headers: bytes) -> bytes:
        return self.send(post(body, *headers))


def post(
    body: bytes = BLOCK_NUMBER, *headers: bytes, host: bytes = b"localhost:8545", version: bytes = b"1.1"
) -> bytes:
    lines = [b"POST / HTTP/" + version, b"Host: " + host, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def run(test: Callable[[Client, Context], Awaitable[None] | None], **options: Any) -> None:
    async def main() -> None:
        context = Context()
        outcome = test(Client(context, **options), context)
        if outcome is not None:
            await outcome

    asyncio.run(main())


def responses(data: bytes) -> list[tuple[int, dict[str, str], bytes]]:
    """Return every response in a byte stream."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        size = int(headers.get("content-length", "0"))
        found.append((int(status.split()[1]), headers, rest[:size]))
        data = rest[size:]
    return found


def only(data: bytes) -> tuple[int, dict[str, str], bytes]:
    (response,) = responses(data)
    return response


def test_a_post_is_answered_as_json() -> None:
    def story(client: Client, context: Context) -> None:
        status, headers, body = only(client.post())
        assert (status, headers["content-type"], body) == (200, "application/json", ANSWER)
        assert not client.transport.is_closed

    run(story)


def test_a_head_seen_before_is_not_parsed_again_and_answers_the_same() -> None:
    def story(client: Client, context: Context) -> None:
        first = client.post()
        assert len(client.heads.sizes) == 1
        assert client.post() == first
        other = BLOCK_NUMBER.replace(b'"id":1', b'"id":2')
        assert only(client.post(other))[2] == ANSWER.replace(b'"id":1', b'"id":2')
        assert only(client.post(b"x" * len(BLOCK_NUMBER)))[0] == 400

    run(story)


def test_heads_with_and_without_gzip_are_distinguished() -> None:
    """On one connection with known and unknown request heads, the node compresses only answers to requests that accept
    gzip.
    """
    ask, plain = b"Accept-Encoding: gzip", b"Accept-Encoding: identity"

    async def story(client: Client, context: Context) -> None:
        request = b'{"jsonrpc":"2.0","id":1,"method":"eth_large","params":[100000]}'
        for header in (ask, plain, ask, ask, plain, plain, ask):
            written = await client.sent(post(request, header))
            assert (b"Content-Encoding: gzip\r\n" in written) == (header == ask)
        assert len(client.heads.sizes) == 2
        assert len(client.heads.with_gzip) == 1
        assert b"Content-Encoding" not in client.post(BLOCK_NUMBER, ask)

    run(story)


def test_old_clients_get_no_chunks_whatever_they_ask_for() -> None:
    async def story(client: Client, context: Context) -> None:
        request = b'{"jsonrpc":"2.0","id":1,"method":"eth_large","params":[100000]}'
        written = await client.sent(post(request, b"Accept-Encoding: gzip", version=b"1.0"))
        assert b"Content-Encoding" not in written
        assert b"Transfer-Encoding" not in written

    run(story)


@pytest.mark.parametrize("headers", [[b"Origin: http://x"], [b"Expect: 100-continue"], [b"Connection: close"]])
def test_heads_with_something_to_decide_are_not_learned(headers: list[bytes]) -> None:
    def story(client: Client, context: Context) -> None:
        client.post(BLOCK_NUMBER, *headers)
        assert client.heads.sizes == {}

    run(story, origins=["*"])


def without_parser(client: Client) -> None:
    """Let every further request outside of the fast path fail."""

    def fail(data: bytes) -> None:
        raise AssertionError("the request was parsed")

    assert client.connection._reader is not None
    client.connection._reader.feed = fail  # type: ignore[method-assign]


def test_a_head_with_a_token_that_is_not_needed_is_stored_for_its_connection_only() -> None:
    def story(client: Client, context: Context) -> None:
        token = b"Authorization: Bearer secret"
        assert only(client.post(BLOCK_NUMBER, token))[2] == ANSWER
        assert client.heads.sizes == {}
        without_parser(client)
        assert only(client.post(BLOCK_NUMBER, token))[2] == ANSWER
        with pytest.raises(AssertionError, match="parsed"):
            client.post(BLOCK_NUMBER, b"Authorization: Bearer another")

    run(story)


def test_a_known_head_and_its_body_in_two_pieces_are_not_parsed() -> None:
    def story(client: Client, context: Context) -> None:
        head, body = post()[: -len(BLOCK_NUMBER)], BLOCK_NUMBER
        assert client.send(head) == b""
        assert only(client.send(body))[2] == ANSWER
        assert client.heads.sizes == {head: len(body)}
        without_parser(client)
        for _ in range(3):
            assert client.send(head) == b""
            assert only(client.send(body))[2] == ANSWER
        assert only(client.post())[2] == ANSWER

    run(story)


def test_a_known_head_may_be_followed_by_more_or_less_than_its_body() -> None:
    async def story(client: Client, context: Context) -> None:
        head, body = post()[: -len(BLOCK_NUMBER)], BLOCK_NUMBER
        client.post()
        assert client.send(head) == b""
        assert client.send(body[:7]) == b""
        assert only(await client.sent(body[7:]))[2] == ANSWER
        assert client.send(head) == b""
        assert [found for _, _, found in responses(await client.sent(body + post()))] == [ANSWER, ANSWER]
        assert client.send(head) == b""
        assert [found for _, _, found in responses(await client.sent(body + head))] == [ANSWER]
        assert only(await client.sent(body))[2] == ANSWER

    run(story)


def test_a_known_head_without_its_body_runs_into_the_read_timeout() -> None:
    def story(client: Client, context: Context) -> None:
        client.post()
        client.send(post()[: -len(BLOCK_NUMBER)])
        client.connection.tick(20.0)
        assert not client.transport.is_closing()
        client.connection.tick(20.0)
        assert client.transport.is_closing()

    run(story)


def test_a_learned_head_does_not_serve_a_longer_or_shorter_message() -> None:
    def story(client: Client, context: Context) -> None:
        whole = post()
        client.send(whole)
        assert client.send(whole[:-5]) == b""
        assert only(client.send(whole[-5:]))[2] == ANSWER
        assert [body for _, _, body in responses(client.send(whole + whole))] == [ANSWER, ANSWER]

    run(story)


@given(st.lists(st.integers(min_value=1, max_value=400), max_size=12))
def test_a_request_may_arrive_in_any_pieces(cuts: list[int]) -> None:
    async def story(client: Client, context: Context) -> None:
        stream = post() + post(b'{"id":2,"method":"eth_getCode","params":["0x1"]}', b"X-Any: thing") + post()
        ends = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})
        received = b"".join([await client.sent(stream[a:b]) for a, b in pairwise(ends)])
        found = responses(received)
        assert [body for _, _, body in found][::2] == [ANSWER, ANSWER]
        assert json.loads(found[1][2])["id"] == 2

    run(story)


def test_a_chunked_body_is_put_together() -> None:
    def story(client: Client, context: Context) -> None:
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        middle = len(BLOCK_NUMBER) // 2
        chunks = b"".join(
            b"%x\r\n%b\r\n" % (len(part), part) for part in (BLOCK_NUMBER[:middle], BLOCK_NUMBER[middle:])
        )
        assert only(client.send(head + chunks + b"0\r\n\r\n"))[2] == ANSWER

    run(story)


def test_expect_100_continue_is_answered_before_the_body_comes() -> None:
    def story(client: Client, context: Context) -> None:
        whole = post(BLOCK_NUMBER, b"Expect: 100-continue")
        head, body = whole[: -len(BLOCK_NUMBER)], whole[-len(BLOCK_NUMBER) :]
        assert client.send(head) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert only(client.send(body))[2] == ANSWER
        assert only(client.post(BLOCK_NUMBER, b"Expect: miracles"))[0] == 417

    run(story)


def test_a_known_request_that_has_to_wait_for_its_turn_is_answered_then() -> None:
    async def story(client: Client, context: Context) -> None:
        assert only(client.post())[2] == ANSWER
        client.shared.scheduler.spend(math.inf)
        assert client.shared.scheduler.is_over
        assert client.post() == b""
        assert client.transport.is_reading_paused
        assert client.connection.idleness() == BUSY
        await asyncio.sleep(0)
        assert only(client.transport.take())[2] == ANSWER
        assert not client.transport.is_reading_paused
        client.shared.scheduler.spend(math.inf)
        assert client.post(WAIT) == b""
        await asyncio.sleep(0)
        assert client.post() == b""  # this answer waits behind the first answer
        assert context.gate is not None
        context.gate.set_result(1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert [json.loads(body)["id"] for _, _, body in responses(client.transport.take())] == [9, 1]

    run(story, shared=SharedResources(scheduler=FairScheduler(turn_s=1e6)))


def test_pipelined_requests_are_answered_in_order_though_the_first_waits() -> None:
    async def story(client: Client, context: Context) -> None:
        assert client.send(post(WAIT) + post()) == b""
        assert context.gate is not None
        context.gate.set_result(1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert [json.loads(body)["id"] for _, _, body in responses(client.transport.take())] == [9, 1]

    run(story)


def test_known_requests_that_come_together_are_not_parsed_either() -> None:
    async def story(client: Client, context: Context) -> None:
        client.post()
        client.post(WAIT)
        assert context.gate is not None
        context.gate.set_result(1)
        for _ in range(20):
            await asyncio.sleep(0)
        client.transport.take()
        reader = client.connection._reader
        assert reader is not None
        reader.feed = fail  # type: ignore[method-assign]
        assert client.send(post() * 2 + post(WAIT) + post() * 2).count(b"HTTP/1.1 200") == 2
        context.gate.set_result(1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert [json.loads(body)["id"] for _, _, body in responses(client.transport.take())] == [9, 1, 1]

    def fail(data: bytes) -> None:
        raise AssertionError(data)

    run(story)


def test_a_head_is_learned_among_others() -> None:
    async def story(client: Client, context: Context) -> None:
        gzip = post(BLOCK_NUMBER, b"Accept-Encoding: gzip")
        assert len(responses(await client.sent(post() + gzip + post()))) == 3
        assert list(client.heads.sizes) == [post()[: -len(BLOCK_NUMBER)]]
        assert len(responses(await client.sent(gzip + post()))) == 2
        assert len(client.heads.sizes) == 2
        assert list(client.heads.with_gzip) == [gzip[: -len(BLOCK_NUMBER)]]

    run(story)


@given(
    st.lists(st.sampled_from([post(), post(BLOCK_NUMBER + b" "), post(b"{}", b"X: 1")]), max_size=12),
    st.data(),
)
def test_requests_are_answered_the_same_however_they_are_cut(requests: list[bytes], data: st.DataObject) -> None:
    async def story(client: Client, context: Context) -> None:
        stream = b"".join(requests)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
        answered = b""
        for begin, end in pairwise([0, *cuts, len(stream)]):
            if end > begin:
                client.connection.data_received(stream[begin:end])
            for _ in range(40):
                await asyncio.sleep(0)
            answered += client.transport.take()
        expected = [None if one.endswith(b"{}") else 1 for one in requests]
        assert [json.loads(body)["id"] for _, _, body in responses(answered)] == expected

    run(story)


def test_an_answer_that_came_later_is_not_kept_once_it_has_been_written() -> None:
    """A late answer is freed as soon as it is written, because answers may be long and garbage collections are rare."""

    class Long(bytearray):
        """Bytes whose release can be observed."""

    async def test(client: Client, context: Context) -> None:
        waiting: PendingReply[Response] = PendingReply(lambda: None)
        client.connection._answer(waiting)
        answer = Long(b"{}")
        gone = weakref.ref(answer)
        gc.disable()
        try:
            waiting.resolve(Response(200, (memoryview(answer),)))
            del answer, waiting
            assert client.transport.take().endswith(b"{}")
            assert gone() is None
        finally:
            gc.enable()

    run(test)


def test_a_client_with_too_many_open_requests_is_not_read_from() -> None:
    def story(client: Client, context: Context) -> None:
        client.send(post(WAIT) * 32)
        assert client.transport.is_reading_paused

    run(story)


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    def story(client: Client, context: Context) -> None:
        client.post()
        client.connection.pause_writing()
        assert client.transport.is_reading_paused
        client.connection.resume_writing()
        assert not client.transport.is_reading_paused
        assert only(client.post())[2] == ANSWER

    run(story)


def test_a_connection_closes_when_the_client_says_so() -> None:
    def story(client: Client, context: Context) -> None:
        status, headers, body = only(client.post(BLOCK_NUMBER, b"Connection: close"))
        assert (status, headers["connection"], body) == (200, "close", ANSWER)
        assert client.transport.is_closed

    run(story)


def test_http_1_0_closes_unless_it_asks_otherwise() -> None:
    def closing(client: Client, context: Context) -> None:
        assert only(client.send(post(version=b"1.0")))[1]["connection"] == "close"
        assert client.transport.is_closed

    def staying(client: Client, context: Context) -> None:
        assert (
            only(client.send(post(BLOCK_NUMBER, b"Connection: keep-alive", version=b"1.0")))[1]["connection"]
            == "keep-alive"
        )
        assert not client.transport.is_closed

    run(closing)
    run(staying)


def test_a_half_closed_client_still_gets_its_answer() -> None:
    async def story(client: Client, context: Context) -> None:
        client.post(WAIT)
        assert client.connection.eof_received()
        assert context.gate is not None
        context.gate.set_result(1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert only(client.transport.take())[0] == 200
        assert client.transport.is_closed

    run(story)


def test_a_lost_client_has_its_requests_given_up() -> None:
    async def story(client: Client, context: Context) -> None:
        client.post(WAIT)
        await asyncio.sleep(0)
        client.connection.connection_lost(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert context.gate is not None
        assert context.gate.cancelled()

    run(story)


def test_a_notification_has_status_200_and_no_body() -> None:
    def story(client: Client, context: Context) -> None:
        for _ in range(2):
            status, headers, body = only(client.post(b'{"method":"eth_blockNumber"}'))
            assert (status, headers["content-length"], body) == (200, "0", b"")

    run(story)


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [b"evil.example", b"localhost:", b"localhost:123456", b"[::1]:8545", b"", b"a:b:c"])
def test_a_host_that_is_not_listed_is_refused(host: bytes) -> None:
    def story(client: Client, context: Context) -> None:
        status, headers, body = only(client.send(post(host=host)))
        assert (status, body) == (403, b'{"message":"Host not authorized."}')
        assert headers["content-type"] == "application/json; charset=utf-8"
        assert context.executed == []

    run(story)


def test_a_refusal_of_a_head_has_no_body_which_would_be_taken_for_the_next_answer() -> None:
    def story(client: Client, context: Context) -> None:
        written = client.send(b"HEAD / HTTP/1.1\r\nHost: evil\r\n\r\n")
        assert written.startswith(b"HTTP/1.1 403 ")
        assert b"Content-Length: 34\r\n" in written
        assert written.endswith(b"\r\n\r\n")

    run(story)


def test_an_absent_host_is_refused_unless_any_is_allowed() -> None:
    bare = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(BLOCK_NUMBER) + BLOCK_NUMBER
    run(lambda client, context: _status(client, bare, 403))
    run(lambda client, context: _status(client, bare, 200), hosts=["*"])
    run(lambda client, context: _status(client, post(), 403), hosts=["none"])


def _status(client: Client, data: bytes, wanted: int) -> None:
    assert only(client.send(data))[0] == wanted


def test_an_origin_needs_to_be_allowed() -> None:
    origin = b"Origin: http://page.example"
    run(lambda client, context: _status(client, post(BLOCK_NUMBER, origin), 403))
    run(lambda client, context: _status(client, post(BLOCK_NUMBER, origin), 403), origins=["http://other"])
    run(lambda client, context: _status(client, post(BLOCK_NUMBER, origin), 403), origins=["http://page"])
    run(lambda client, context: _status(client, post(BLOCK_NUMBER, origin), 200), origins=["x", "http://page.*"])

    def story(client: Client, context: Context) -> None:
        _, headers, _ = only(client.post(BLOCK_NUMBER, origin))
        assert headers["access-control-allow-origin"] == "http://page.example"
        _, headers, _ = only(client.post())
        assert "access-control-allow-origin" not in headers

    run(story, origins=["*"])


def test_a_browser_may_ask_first() -> None:
    def story(client: Client, context: Context) -> None:
        ask = (
            b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a\r\nAccess-Control-Request-Method: POST\r\n\r\n"
        )
        status, headers, body = only(client.send(ask))
        assert (status, body) == (200, b"")
        assert headers["access-control-allow-headers"] == "*,content-type"
        assert headers["access-control-allow-methods"] == "GET, POST, OPTIONS"
        assert headers["access-control-allow-origin"] == "http://a"
        with_token = ask.replace(b"\r\n\r\n", b"\r\nAccess-Control-Request-Headers: authorization,content-type\r\n\r\n")
        _, headers, _ = only(client.send(with_token))
        assert headers["access-control-allow-headers"] == "*,content-type,authorization"

    run(story, origins=["all"])
    refused = b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a\r\nAccess-Control-Request-Method: POST\r\n"
    refused += b"Access-Control-Request-Headers: authorization\r\n\r\n"
    run(lambda client, context: _status(client, refused, 403), origins=["http://b"])


def test_a_body_too_large_is_refused_before_it_is_read() -> None:
    def story(client: Client, context: Context) -> None:
        status, headers, _ = only(client.send(post(b"x" * 200)[:100]))
        assert (status, headers["connection"]) == (413, "close")
        assert client.transport.has_eof
        assert client.send(b"x" * 1000) == b""
        assert not client.transport.is_closed

    run(story, limits={"max_body_bytes": 100})


def test_a_chunked_body_too_large_is_refused_while_it_is_read() -> None:
    def story(client: Client, context: Context) -> None:
        client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert client.send(b"40\r\n" + b"x" * 64 + b"\r\n") == b""
        assert only(client.send(b"40\r\n" + b"x" * 64 + b"\r\n"))[0] == 413

    run(story, limits={"max_body_bytes": 100})


def test_what_is_not_http_is_refused() -> None:
    run(lambda client, context: _status(client, b"\x16\x03\x01 hello there\r\n\r\n", 400))


def test_a_head_without_end_is_refused() -> None:
    def story(client: Client, context: Context) -> None:
        client.send(b"POST / HTTP/1.1\r\nX: ")
        assert only(b"".join(client.send(b"y" * 10_000) for _ in range(10)))[0] == 431

    run(story)


def test_an_upgrade_is_ignored() -> None:
    def story(client: Client, context: Context) -> None:
        upgrade = post(BLOCK_NUMBER, b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMA")
        assert [body for _, _, body in responses(client.send(upgrade + post()))] == [ANSWER, ANSWER]

    run(story)


@pytest.mark.parametrize(("version", "connection"), [(b"1.1", b"close, Upgrade"), (b"1.0", b"Upgrade")])
def test_an_upgrade_or_close_request_closes_the_connection(version: bytes, connection: bytes) -> None:
    def story(client: Client, context: Context) -> None:
        answer = client.send(post(BLOCK_NUMBER, b"Connection: " + connection, b"Upgrade: h2c", version=version))
        assert only(answer)[1]["connection"] == "close"
        assert client.transport.is_closed

    run(story)


def test_a_tunnel_is_refused() -> None:
    run(lambda client, context: _status(client, b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405))


def test_other_paths_go_to_the_application() -> None:
    def story(client: Client, context: Context) -> None:
        status, _, body = only(client.send(b"GET /readiness?minPeers=3 HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        assert (status, body) == (404, b"GET /readiness?minPeers=3")

    run(story)


def test_a_connection_above_the_limit_gets_503_and_is_closed() -> None:
    def story(client: Client, context: Context) -> None:
        assert client.transport.is_closed
        status, _, body = only(client.transport.take())
        assert (status, json.loads(body)["error"]["code"]) == (503, -32005)
        assert client.post() == b""

    run(story, opened=lambda connection: False)


# --- timeouts ------------------------------------------------------------------------------------


def test_a_request_that_never_ends_is_cut_off() -> None:
    def story(client: Client, context: Context) -> None:
        client.send(post()[:50])
        for _ in range(6):
            client.send(b"")
            client.connection.tick(5.0)
        assert not client.transport.is_aborted
        client.connection.tick(5.0)
        assert client.transport.is_aborted

    run(story)


def test_a_quiet_client_is_closed_after_a_while_and_a_busy_one_is_not() -> None:
    def story(client: Client, context: Context) -> None:
        for _ in range(100):
            client.post()
            client.connection.tick(5.0)
        assert not client.transport.is_aborted
        for _ in range(4):
            client.connection.tick(5.0)
        assert client.transport.is_aborted

    run(story, limits={"idle_timeout_s": 15.0})


def test_a_client_that_waits_for_us_is_not_cut_off() -> None:
    def story(client: Client, context: Context) -> None:
        client.post(WAIT)
        for _ in range(100):
            client.connection.tick(60.0)
        assert not client.transport.is_aborted

    run(story)


def test_a_client_that_never_reads_is_cut_off() -> None:
    def story(client: Client, context: Context) -> None:
        client.post()
        client.connection.pause_writing()
        for _ in range(7):
            client.connection.tick(5.0)
        assert client.transport.is_aborted

    run(story)


def test_a_client_that_never_reads_is_cut_off_also_when_it_has_asked_for_more() -> None:
    def story(client: Client, context: Context) -> None:
        client.connection.pause_writing()
        client.send(post() * 8)  # the client sends these requests before the node stops reading
        for _ in range(7):
            client.connection.tick(5.0)
        assert client.transport.is_aborted

    run(story, shared=patient(0.0))


def test_a_client_that_takes_a_long_answer_slowly_is_not_cut_off_until_it_takes_nothing() -> None:
    def story(client: Client, context: Context) -> None:
        client.post()
        client.transport.unread = 8_000_000
        client.connection.pause_writing()
        for _ in range(40):
            client.transport.unread -= 100_000
            client.connection.tick(5.0)
        assert not client.transport.is_aborted
        for _ in range(7):
            client.connection.tick(5.0)
        assert client.transport.is_aborted

    run(story)


@pytest.mark.parametrize("unread", [0, 1])
def test_an_evicted_connection_is_closed_gracefully_only_without_unread_input(unread: int) -> None:
    def story(client: Client, context: Context) -> None:
        client.post()
        client.transport.unread = unread
        client.connection.evict()
        assert client.transport.is_closed
        assert client.transport.is_aborted == bool(unread)

    run(story)


def wide(count: int, value: bytes = b"") -> bytes:
    return b"".join(b"X-%x: %b\r\n" % (number, value) for number in range(count))


def test_a_head_has_few_headers() -> None:
    def story(client: Client, context: Context) -> None:
        assert client.post(BLOCK_NUMBER, wide(200)[:-2]).endswith(ANSWER)
        assert only(client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + wide(8000)))[0] == 431

    run(story)


def test_a_head_that_does_not_end_counts() -> None:
    def story(client: Client, context: Context) -> None:
        client.send(b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: localhost\r\n" + wide(100, b"y" * 200))
        assert client.shared.budget.held > 30_000
        client.connection.connection_lost(None)
        assert client.shared.budget.held == 0

    run(story)


def test_an_idle_connection_holds_no_head() -> None:
    def story(client: Client, context: Context) -> None:
        client.post(BLOCK_NUMBER, wide(100, b"y" * 200)[:-2])
        assert client.shared.budget.held == 0
        client.send(b"GET /elsewhere HTTP/1.1\r\nHost: localhost\r\n" + wide(100, b"y" * 200) + b"\r\n")
        assert client.shared.budget.held == 0
        gc.collect()
        held = [one for one in gc.get_objects() if type(one) is dict and b"x-1" in one]
        assert held == []

    run(story)


@pytest.mark.parametrize("name", [b"Accept-Encoding", b"Connection", b"If-None-Match", b"Upgrade"])
def test_a_list_is_short(name: bytes) -> None:
    def story(client: Client, context: Context) -> None:
        assert only(client.post(BLOCK_NUMBER, name + b": " + b"," * 60_000 + b"gzip"))[0] == 431

    run(story)


def test_a_long_question_in_a_target_counts_while_it_is_worked_on() -> None:
    def story(client: Client, context: Context) -> None:
        head = b"POST /?%b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        client.send(head % (b"a" * 10_000, len(WAIT)) + WAIT)
        assert client.shared.budget.held > 10_000

    run(story)


def test_the_table_of_heads_is_bounded() -> None:
    heads = PlainHeads()
    for number in range(5000):
        heads.learn(b"POST / HTTP/1.1\r\nX: %d\r\n\r\nab" % number, 2)
    assert len(heads.sizes) <= 1024
    heads.sizes.clear()
    heads.learn(b"x" * 2000 + b"\r\n\r\nab", 2)
    heads.learn(b"POST\r\n\r\nabc", 2)
    assert heads.sizes == {}


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_no_bytes_make_the_connection_fail(pieces: list[bytes]) -> None:
    def story(client: Client, context: Context) -> None:
        for piece in pieces:
            client.send(piece)

    run(story)


def test_many_headers_are_too_many_even_when_they_come_at_once() -> None:
    async def story(client: Client, context: Context) -> None:
        status, _, _ = only(
            await client.sent(post(BLOCK_NUMBER, *[b"X-%d: %b" % (number, b"y" * 100) for number in range(100)]))
        )
        assert status == 431

    run(story, limits={"max_head_bytes": 4096})


def test_the_work_of_a_client_that_has_gone_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ophion.rpc.transport.http.connection._HALF_CLOSED_TIMEOUT_S", 0.01)

    async def story(client: Client, context: Context) -> None:
        assert client.post(WAIT) == b""
        assert client.connection.eof_received()
        assert not client.transport.is_aborted
        await asyncio.sleep(0.05)
        assert client.transport.is_aborted

    run(story)


# --- memory held for clients ---------------------------------------------------------------------


def test_a_body_is_let_go_of_when_it_was_used_and_when_the_connection_goes() -> None:
    async def story(client: Client, context: Context) -> None:
        head, size = post(b" " * 200_000).partition(b"\r\n\r\n")[0] + b"\r\n\r\n", 200_000
        await client.sent(head + b" " * (size - 1))
        assert client.shared.budget.held >= size - 1
        reader = client.connection._reader
        assert reader is not None
        assert size - 1 < reader.held_bytes < size + len(head)
        await client.sent(b" ")
        assert reader.held_bytes == 0, "the connection stays, the body does not"
        assert client.shared.budget.held == 0
        await client.sent(head + b" " * (size - 1))
        found, parser = weakref.ref(client.connection), weakref.ref(reader)
        client.connection.connection_lost(None)
        assert client.shared.budget.held == 0
        gc.disable()
        try:
            del reader, client.connection
            await asyncio.sleep(0)
            assert found() is None, "nothing goes round in a circle"
            assert parser() is None
        finally:
            gc.enable()

    run(story)


def test_incomplete_bodies_are_evicted_with_503() -> None:
    shared = SharedResources(MemoryBudget(1_000_000), patient().scheduler)

    async def story(client: Client, context: Context) -> None:
        clients = [client, *(Client(context, shared=shared) for _ in range(12))]
        for one in clients:
            await one.sent(post(b" " * 200_000)[:-100_000])
        assert shared.budget.held <= 1_000_000
        refused = [one for one in clients if one.transport.has_eof]
        assert refused
        assert refused[0] is client, "the one that has held it longest"
        small = Client(context, shared=shared)
        assert only(await small.sent(post()))[0] == 200
        last = clients[-1]
        assert only(await last.sent(b" " * 100_000))[0] == 400, "nothing but spaces is no JSON, but it was looked at"

    run(story, shared=shared)


def test_a_refused_body_has_a_retry_time() -> None:
    async def story(client: Client, context: Context) -> None:
        status, headers, _ = only(await client.sent(post(b" " * 200_000)[:-100]))
        assert (status, headers["retry-after"]) == (503, "1")
        assert client.transport.has_eof

    run(story, shared=SharedResources(MemoryBudget(100_000)))


def test_crumbs_of_a_body_take_no_more_than_the_body() -> None:
    async def story(client: Client, context: Context) -> None:
        await client.sent(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            await client.sent(b"2\r\n  \r\n" * 1000)
        assert client.connection._reader is not None
        assert type(client.connection._reader._body) is bytearray
        assert 40_000 < client.shared.budget.held < 40_100

    run(story)


def test_many_pipelined_requests_take_turns_and_nothing_is_read_meanwhile() -> None:
    async def story(client: Client, context: Context) -> None:
        first = client.send(post() * 100)
        assert 0 < len(responses(first)) < 100
        assert client.transport.is_reading_paused
        rest = await client.sent(b"")
        assert len(responses(first + rest)) == 100
        assert not client.transport.is_reading_paused

    run(story, shared=patient(0.0))


def test_upgrades_without_end_are_answered_one_by_one() -> None:
    async def story(client: Client, context: Context) -> None:
        one = b"GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
        found = responses(await client.sent(one * 3000))
        assert [status for status, _, _ in found] == [404] * 3000

    run(story)


@pytest.mark.parametrize("name", [b"Host", b"Authorization", b"Content-Type", b"Content-Length", b"Origin"])
def test_headers_that_decide_something_come_once(name: bytes) -> None:
    def story(client: Client, context: Context) -> None:
        value = b"%d" % len(BLOCK_NUMBER) if name == b"Content-Length" else b"localhost"
        line = name + b": " + value
        lines = [line] if name in (b"Host", b"Content-Length") else [line, line]
        assert only(client.post(BLOCK_NUMBER, *lines))[0] == 400
        assert client.transport.has_eof

    run(story, origins=["*"])


@pytest.mark.parametrize("length", [b"0" * 5000 + b"63", b"0" * 5000])
def test_a_length_of_thousands_of_digits_is_read_or_refused(length: bytes) -> None:
    async def story(client: Client, context: Context) -> None:
        data = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + length + b"\r\n\r\n" + BLOCK_NUMBER
        answer = await client.sent(data)
        assert answer.split()[1] in (b"200", b"400")

    run(story)


def test_what_comes_after_a_body_is_no_header() -> None:
    def story(client: Client, context: Context) -> None:
        chunk = b"%x\r\n%b\r\n0\r\n" % (len(BLOCK_NUMBER), BLOCK_NUMBER)
        lines = b"Host: evil\r\nOrigin: http://evil\r\nAuthorization: Bearer x\r\nHost: evil\r\n"
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert only(client.send(head + chunk + lines + b"\r\n"))[0] == 200

    run(story)


def test_a_client_that_goes_on_sending_after_its_refusal_is_cut_off_somewhen() -> None:
    def story(client: Client, context: Context) -> None:
        client.post(b"x", b"Content-Length: 5")
        for _ in range(70):
            client.connection.data_received(b" " * 1_000_000)
        assert client.transport.is_aborted

    run(story)


def test_clients_that_do_not_read_are_evicted_before_active_ones() -> None:
    def story(client: Client, context: Context) -> None:
        client.post()
        asking = client.connection.idleness()
        client.connection.pause_writing()
        assert client.connection.idleness() > asking

    run(story)
