"""Tests unary gRPC calls: reused connections, errors of the server, deadlines, TLS, and servers without gRPC."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from ophion.runtime.grpc_client import GrpcClient, GrpcError
from ophion.runtime.hpack import encode_headers
from tests.unit.hostile_node import hostile_node
from tests.unit.http2_frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    REPLY_HEADERS,
    REPLY_TRAILERS,
    Frame,
    Http2Server,
    grpc_failure,
    grpc_reply,
    number,
)
from tests.unit.self_signed_certificate import self_signed_certificate

METHOD = "/test.Echo/Echo"


def _client(url: str, tls: ssl.SSLContext | None = None, timeout_s: float = 10) -> GrpcClient:
    return GrpcClient(url, tls, timeout_s, 100_000)


def test_calls_share_one_connection() -> None:
    server = Http2Server(lambda stream, message: grpc_reply(stream, message[::-1]))

    async def story(url: str) -> None:
        client = _client(url)
        assert await client.call(METHOD, b"one") == b"eno"
        assert await client.call(METHOD, b"") == b""
        long = bytes(range(250)) * 390
        assert await asyncio.gather(*(client.call(METHOD, long) for _ in range(3))) == [long[::-1]] * 3
        client.disconnect()
        assert await client.call(METHOD, b"after that") == b"taht retfa"
        client.disconnect()

    server.play(story)
    assert server.connections == 2


def test_first_calls_share_one_connection() -> None:
    server = Http2Server(grpc_reply)

    async def story(url: str) -> None:
        client = _client(url)
        assert await asyncio.gather(*(client.call(METHOD, bytes((one,))) for one in range(5))) == [
            bytes((one,)) for one in range(5)
        ]
        client.disconnect()

    server.play(story)
    assert server.connections == 1


def test_a_connection_that_the_server_closed_is_replaced_and_the_call_repeated() -> None:
    server = Http2Server(lambda stream, message: grpc_reply(stream, message) if stream == 1 else None)

    async def story(url: str) -> None:
        client = _client(url)
        for message in (b"a", b"b", b"c"):
            assert await client.call(METHOD, message) == message
        client.disconnect()

    server.play(story)
    assert server.connections == 3
    assert server.messages == [b"a", b"b", b"b", b"c", b"c"]


def test_a_call_that_is_disconnected_does_not_connect_again() -> None:
    server = Http2Server(lambda stream, message: grpc_reply(stream, message) if message == b"x" else [])

    async def story(url: str) -> None:
        client = _client(url)
        assert await client.call(METHOD, b"x") == b"x"
        calls = [asyncio.create_task(client.call(METHOD, b"silent")) for _ in range(3)]
        await server.wait_for(4)
        client.disconnect()
        for call in calls:
            with pytest.raises(GrpcError, match="the connection was closed"):
                await call
        assert server.connections == 1
        assert await client.call(METHOD, b"x") == b"x", "a later call connects"
        client.disconnect()

    server.play(story)
    assert server.connections == 2


@pytest.mark.parametrize("iterations", [0, 1, 2, 3, 4, 6, 10])
def test_a_call_that_is_disconnected_while_it_connects_leaves_no_connection(iterations: int) -> None:
    server = Http2Server(lambda stream, message: [] if message == b"silent" else grpc_reply(stream, message))

    async def story(url: str) -> None:
        client = _client(url)
        calls = [asyncio.create_task(client.call(METHOD, b"silent")) for _ in range(3)]
        for _ in range(1 + iterations):
            await asyncio.sleep(0)
        client.disconnect()
        for call in calls:
            with pytest.raises(GrpcError, match="the connection was closed"):
                await call
        assert await client.call(METHOD, b"x") == b"x"
        client.disconnect()

    server.play(story)
    assert server.connections <= 2


def test_a_connection_that_the_server_ends_is_replaced() -> None:
    def answer(stream: int, message: bytes) -> list[Frame]:
        return [*grpc_reply(stream, message), Frame(GOAWAY, 0, 0, number(stream) + number(0))]

    server = Http2Server(answer)

    async def story(url: str) -> None:
        client = _client(url)
        for _ in range(3):
            assert await client.call(METHOD, b"x") == b"x"
        client.disconnect()

    server.play(story)
    assert server.connections == 3


def test_a_call_is_not_repeated_on_a_new_connection() -> None:
    server = Http2Server(lambda stream, message: None)

    async def story(url: str) -> None:
        with pytest.raises(GrpcError, match="server closed the connection|reset"):
            await _client(url).call(METHOD, b"x")

    server.play(story)
    assert server.connections == 1


def test_an_error_of_the_server_has_its_text() -> None:
    def answer(stream: int, message: bytes) -> list[Frame]:
        return grpc_failure(stream, "3", f"etcdserver: 100%25 too large %1b[31m{'x' * 300}")

    server = Http2Server(answer)

    async def story(url: str) -> None:
        client = _client(url)
        for _ in range(2):
            with pytest.raises(GrpcError) as caught:
                await client.call(METHOD, b"x")
            text = str(caught.value)
            assert text.startswith("etcdserver: 100% too large \\x1b[31mxxx")
            assert text.endswith("x (gRPC status 3)")
            assert len(text) < 250
        client.disconnect()

    server.play(story)
    assert server.connections == 1


def _reply(status: str, body: bytes, *, ends: bool = False) -> list[Frame]:
    headers = Frame(HEADERS, END_HEADERS, 1, encode_headers([(":status", status)]))
    if ends:
        return [headers, Frame(DATA, END_STREAM, 1, body)]
    return [headers, Frame(DATA, 0, 1, body), Frame(HEADERS, END_HEADERS | END_STREAM, 1, REPLY_TRAILERS)]


@pytest.mark.parametrize(
    ("frames", "problem"),
    [
        (_reply("404", b"<html>", ends=True), r"does not speak gRPC \(HTTP status 404\)"),
        (_reply("\x1b[31m", b"", ends=True), r"HTTP status \\x1b\[31m\)"),
        ([Frame(DATA, END_STREAM, 1, b"x")], "HTTP status unknown"),
        ([Frame(HEADERS, END_HEADERS | END_STREAM, 1, REPLY_HEADERS)], "does not speak gRPC"),
        (_reply("200", b""), "not one message"),
        (_reply("200", b"\0\0\0\0"), "not one message"),
        (_reply("200", b"\1\0\0\0\0"), "not one message"),
        (_reply("200", b"\0\0\0\0\2x"), "not one message"),
        (_reply("200", b"\0\0\0\0\0\0\0\0\0\0"), "not one message"),
        (_reply("200", b"\0\xff\xff\xff\xffx"), "not one message"),
    ],
)
def test_replies_that_are_not_grpc(frames: list[Frame], problem: str) -> None:
    async def story(url: str) -> None:
        client = _client(url)
        with pytest.raises(GrpcError, match=problem):
            await client.call(METHOD, b"x")
        client.disconnect()

    Http2Server(lambda stream, message: frames).play(story)


def test_a_server_of_http_1_is_refused() -> None:
    async def story(url: str) -> None:
        with pytest.raises(GrpcError, match="does not speak HTTP/2"):
            await _client(url).call(METHOD, b"x")

    with hostile_node() as node:
        asyncio.run(story(node.url))


def test_a_silent_server_meets_the_deadline_and_the_next_call_may_succeed() -> None:
    server = Http2Server(lambda stream, message: [] if message == b"silent" else grpc_reply(stream, message))

    async def story(url: str) -> None:
        client = _client(url, timeout_s=0.1)
        with pytest.raises(GrpcError, match=r"no reply within 0\.1 s"):
            await client.call(METHOD, b"silent")
        client.timeout_s = 10
        assert await client.call(METHOD, b"x") == b"x"
        client.disconnect()

    server.play(story)
    assert server.connections == 1


def test_an_unreachable_server_is_named() -> None:
    async def story() -> None:
        with pytest.raises(GrpcError, match="not a valid host name"):
            await _client("http://a..b:1").call(METHOD, b"x")
        with pytest.raises(GrpcError, match="refused"):
            await _client("http://127.0.0.1:1").call(METHOD, b"x")

    asyncio.run(story())


@pytest.mark.parametrize("offers_http2", [True, False])
def test_tls(tmp_path: Path, offers_http2: bool) -> None:
    certificate, key = self_signed_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if offers_http2:
        context.set_alpn_protocols(["h2"])
    server = Http2Server(grpc_reply, context)

    async def story(url: str) -> None:
        client = _client(url, ssl.create_default_context(cafile=str(certificate)))
        if offers_http2:
            assert await client.call(METHOD, b"x" * 70_000) == b"x" * 70_000
            client.disconnect()
        else:
            with pytest.raises(GrpcError, match="does not offer HTTP/2"):
                await client.call(METHOD, b"x")
        with pytest.raises(GrpcError, match="certificate"):
            await _client(url, ssl.create_default_context()).call(METHOD, b"x")

    server.play(story)
