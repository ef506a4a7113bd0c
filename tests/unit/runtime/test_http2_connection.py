"""Tests requests over one HTTP/2 connection: windows, split and interleaved frames, ends, and broken rules."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.runtime.hpack import MAX_BLOCK_BYTES, decode_headers, encode_headers
from ophion.runtime.http2_connection import (
    MAX_INTERIM_RESPONSES,
    Http2Closed,
    Http2Connection,
    Http2Error,
    Http2Reply,
)
from tests.unit.http2_frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PUSH_PROMISE,
    REPLY_HEADERS,
    REPLY_TRAILERS,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    Frame,
    encoded,
    frames_of,
    grpc_body,
    grpc_reply,
    number,
    settings,
)

MAX_REPLY = 100_000
BLOCK = encode_headers([(":method", "POST")])


class _Transport(asyncio.Transport):
    """Keeps what the connection writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_aborted
        self.written += data

    def abort(self) -> None:
        self.is_aborted = True


class _Server:
    """The other end of a connection."""

    def __init__(self) -> None:
        self.connection = Http2Connection(MAX_REPLY)
        self.transport = _Transport()
        self.connection.connection_made(self.transport)
        self._read = len(PREFACE)

    def send(self, *frames: Frame) -> None:
        self.connection.data_received(encoded(list(frames)))

    def frames(self) -> list[Frame]:
        """Return the frames that the connection has written since the last call."""
        assert self.transport.written.startswith(PREFACE)
        found = list(frames_of(self.transport.written[self._read :]))
        self._read = len(self.transport.written)
        return found

    async def request(self, body: bytes = b"question") -> asyncio.Task[Http2Reply]:
        """Start a request, up to its wait for the reply."""
        task = asyncio.create_task(self.connection.request(BLOCK, body))
        await asyncio.sleep(0)
        return task


def _play(story: Callable[[_Server], Awaitable[None]]) -> None:
    async def main() -> None:
        await story(_Server())

    asyncio.run(main())


def test_a_request_and_its_reply() -> None:
    async def story(server: _Server) -> None:
        task = await server.request()
        hello, window, head, body = server.frames()
        assert hello.kind == SETTINGS
        assert hello.content[:6] == bytes.fromhex("000100000000"), "no dynamic table"
        assert (window.kind, window.content) == (WINDOW_UPDATE, number(MAX_REPLY - 65535))
        assert head == Frame(HEADERS, END_HEADERS, 1, BLOCK)
        assert body == Frame(DATA, END_STREAM, 1, b"question")
        server.send(settings(), Frame(SETTINGS, ACK), *grpc_reply(1, b"answer"))
        reply = await task
        assert (reply.headers[":status"], reply.body) == ("200", grpc_body(b"answer"))
        assert reply.trailers == {"grpc-status": "0", "grpc-message": ""}
        assert server.frames() == [Frame(SETTINGS, ACK)]
        assert server.connection.is_open
        second = await server.request(b"next")
        assert [frame.stream for frame in server.frames()] == [3, 3]
        server.send(*grpc_reply(3, b""))
        assert (await second).body == grpc_body(b"")

    _play(story)


@given(st.data())
def test_replies_may_be_split_anywhere_and_interleaved(data: st.DataObject) -> None:
    async def story(server: _Server) -> None:
        tasks = [await server.request(bytes((index,))) for index in range(3)]
        messages = data.draw(st.lists(st.binary(max_size=60), min_size=3, max_size=3))
        queues = [grpc_reply(2 * index + 1, message, part_bytes=7) for index, message in enumerate(messages)]
        sent = settings().encode()
        while any(queues):
            queue = data.draw(st.sampled_from([queue for queue in queues if queue]))
            sent += queue.pop(0).encode()
        while sent:
            size = data.draw(st.integers(1, 50))
            server.connection.data_received(sent[:size])
            sent = sent[size:]
        assert [(await task).body for task in tasks] == [grpc_body(message) for message in messages]

    _play(story)


@given(st.lists(st.integers(1, 40_000), max_size=12), st.integers(0, 70_000), st.integers(1, 120_000))
def test_a_body_is_sent_as_the_windows_allow(updates: list[int], window: int, size: int) -> None:
    """The server never gets more than it has allowed, and in the end gets the whole body."""

    async def story(server: _Server) -> None:
        server.send(settings(window=window))
        body = bytes(range(251)) * (size // 251 + 1)
        task = await server.request(body)
        received = b"".join(frame.content for frame in server.frames() if frame.kind == DATA)
        of_stream, of_connection = window, 65535
        for update in [*updates, len(body), len(body)]:
            assert len(received) == min(of_stream, of_connection, len(body))
            server.send(Frame(WINDOW_UPDATE, 0, 1, number(update)), Frame(WINDOW_UPDATE, 0, 0, number(update)))
            of_stream, of_connection = of_stream + update, of_connection + update
            sent = [frame for frame in server.frames() if frame.kind == DATA]
            assert all(len(frame.content) <= 16384 for frame in sent)
            received += b"".join(frame.content for frame in sent)
        assert received == body
        server.send(*grpc_reply(1, b"ok"))
        assert (await task).body == grpc_body(b"ok")

    _play(story)


def test_a_smaller_window_holds_for_requests_that_are_sent() -> None:
    async def story(server: _Server) -> None:
        server.send(settings(window=10))
        task = await server.request(b"x" * 30)
        server.send(settings(window=4), Frame(WINDOW_UPDATE, 0, 1, number(6)))
        assert sum(len(frame.content) for frame in server.frames() if frame.kind == DATA) == 10
        server.send(Frame(WINDOW_UPDATE, 0, 1, number(20)))
        assert server.frames()[-1] == Frame(DATA, END_STREAM, 1, b"x" * 20)
        server.send(*grpc_reply(1, b""))
        await task

    _play(story)


def test_windows_of_the_client_are_refilled() -> None:
    async def story(server: _Server) -> None:
        server.send(settings())
        for index in range(4):
            task = await server.request()
            server.frames()
            server.send(*grpc_reply(2 * index + 1, bytes(60_000)))
            assert (await task).body == grpc_body(bytes(60_000))
            updates = [frame for frame in server.frames() if frame.kind == WINDOW_UPDATE]
            assert sum(int.from_bytes(frame.content, "big") for frame in updates) > 50_000

    _play(story)


def test_padding_priorities_continuations_and_unknown_frames() -> None:
    async def story(server: _Server) -> None:
        task = await server.request()
        server.send(
            settings(),
            Frame(0xAB, 0xFF, 77, b"unknown"),
            Frame(2, 0, 1, bytes(5)),
            Frame(HEADERS, END_HEADERS, 1, encode_headers([(":status", "103"), ("link", "x")])),
            Frame(HEADERS, PADDED | WITH_PRIORITY, 1, b"\x03" + bytes(5) + REPLY_HEADERS[:4] + bytes(3)),
            Frame(CONTINUATION, 0, 1, REPLY_HEADERS[4:9]),
            Frame(CONTINUATION, END_HEADERS, 1, REPLY_HEADERS[9:]),
            Frame(DATA, PADDED, 1, b"\x02answer" + bytes(2)),
            Frame(DATA, 0, 1),
            Frame(HEADERS, END_STREAM, 1, REPLY_TRAILERS[:3]),
            Frame(CONTINUATION, END_HEADERS, 1, REPLY_TRAILERS[3:]),
        )
        reply = await task
        assert (reply.body, reply.headers[":status"]) == (b"answer", "200")
        assert reply.trailers is not None
        assert reply.trailers["grpc-status"] == "0"

    _play(story)


def test_pings_are_answered() -> None:
    async def story(server: _Server) -> None:
        server.send(settings(), Frame(PING, 0, 0, b"12345678"), Frame(PING, ACK, 0, b"87654321"))
        assert server.frames()[2:] == [Frame(SETTINGS, ACK), Frame(PING, ACK, 0, b"12345678")]

    _play(story)


def test_a_reply_before_the_end_of_the_request_stops_it() -> None:
    async def story(server: _Server) -> None:
        server.send(settings(window=5))
        task = await server.request(b"x" * 10)
        trailers = encode_headers([(":status", "200"), ("grpc-status", "8")])
        server.frames()
        server.send(
            Frame(HEADERS, END_HEADERS | END_STREAM, 1, trailers),
            Frame(RST_STREAM, 0, 1, number(0)),
            Frame(WINDOW_UPDATE, 0, 1, number(100)),
        )
        assert (await task).trailers == {":status": "200", "grpc-status": "8"}
        assert server.frames() == [Frame(RST_STREAM, 0, 1, number(8))]
        assert server.connection.is_open

    _play(story)


def test_a_request_without_a_waiting_caller_is_cancelled() -> None:
    async def story(server: _Server) -> None:
        server.send(settings())
        task = await server.request()
        server.frames()
        task.cancel()
        await asyncio.wait([task])
        assert server.frames() == [Frame(RST_STREAM, 0, 1, number(8))]
        server.send(*grpc_reply(1, b"late"))
        assert server.connection.is_open

    _play(story)


def test_a_reset_ends_one_request() -> None:
    async def story(server: _Server) -> None:
        first, second = await server.request(), await server.request()
        server.send(settings(), Frame(RST_STREAM, 0, 1, number(7)), *grpc_reply(3, b"answer"))
        with pytest.raises(Http2Error, match="reset the stream with code 7"):
            await first
        assert (await second).body == grpc_body(b"answer")

    _play(story)


def test_the_server_ends_the_connection_after_the_requests_that_it_has_begun() -> None:
    async def story(server: _Server) -> None:
        first, second = await server.request(), await server.request()
        server.send(settings(), Frame(GOAWAY, 0, 0, number(1) + number(0) + b"restart"))
        with pytest.raises(Http2Closed, match="closes the connection"):
            await second
        assert not server.connection.is_open
        assert not server.transport.is_aborted
        with pytest.raises(Http2Closed):
            await server.connection.request(BLOCK, b"late")
        server.send(*grpc_reply(1, b"answer"))
        assert (await first).body == grpc_body(b"answer")
        assert server.transport.is_aborted

    _play(story)


def test_an_idle_connection_that_the_server_ends_is_closed() -> None:
    async def story(server: _Server) -> None:
        server.send(settings(), Frame(GOAWAY, 0, 0, number(0) + number(0)))
        assert server.transport.is_aborted
        assert not server.connection.is_open

    _play(story)


@pytest.mark.parametrize(
    ("cause", "text"), [(None, "server closed"), (OSError("reset"), "reset"), (OSError(), "OSErr")]
)
def test_a_lost_connection_ends_requests(cause: OSError | None, text: str) -> None:
    async def story(server: _Server) -> None:
        task = await server.request()
        server.connection.connection_lost(cause)
        with pytest.raises(Http2Closed, match=text):
            await task
        assert not server.connection.is_open

    _play(story)


def test_closing_ends_requests() -> None:
    async def story(server: _Server) -> None:
        task = await server.request()
        server.connection.close()
        with pytest.raises(Http2Closed, match="was closed"):
            await task
        assert server.transport.is_aborted
        server.connection.data_received(settings().encode())

    _play(story)


LONG_BLOCK = bytes(MAX_BLOCK_BYTES // 2 + 1)
INTERIM_HEADERS = encode_headers([(":status", "103"), ("link", "</style.css>")])
HOSTILE: list[tuple[str, Sequence[Frame]]] = [
    ("does not speak HTTP/2", [Frame(PING, 0, 0, bytes(8))]),
    ("malformed settings", [Frame(SETTINGS, 0, 0, bytes(5))]),
    ("window is too large", [settings(window=2**31)]),
    ("does not speak HTTP/2", [settings(), Frame(DATA, 0, 1, bytes(16385))]),
    ("malformed ping", [settings(), Frame(PING, 0, 0, bytes(7))]),
    ("without a request", [settings(), Frame(PUSH_PROMISE, END_HEADERS, 1, bytes(4))]),
    ("malformed frame", [settings(), Frame(RST_STREAM, 0, 1, bytes(3))]),
    ("malformed frame", [settings(), Frame(GOAWAY, 0, 0, bytes(3))]),
    ("malformed frame", [settings(), Frame(WINDOW_UPDATE, 0, 0, bytes(5))]),
    ("window is too large", [settings(), *[Frame(WINDOW_UPDATE, 0, 0, number(2**31 - 1))] * 2]),
    ("window is too large", [settings(), *[Frame(WINDOW_UPDATE, 0, 1, number(2**31 - 1))] * 2]),
    ("replies to no request", [settings(), Frame(DATA, 0, 0, b"x")]),
    ("replies to no request", [settings(), Frame(DATA, 0, 2, b"x")]),
    ("replies to no request", [settings(), Frame(HEADERS, END_HEADERS, 3, REPLY_HEADERS)]),
    ("replies to no request", [settings(), Frame(RST_STREAM, 0, 5, number(0))]),
    ("malformed padding", [settings(), Frame(DATA, PADDED, 1, b"\x03ab")]),
    ("malformed padding", [settings(), Frame(HEADERS, PADDED | END_HEADERS, 1)]),
    ("that has not begun", [settings(), Frame(CONTINUATION, END_HEADERS, 1, REPLY_HEADERS)]),
    ("that has not begun", [settings(), Frame(HEADERS, 0, 1), Frame(CONTINUATION, END_HEADERS, 3)]),
    ("does not end a header block", [settings(), Frame(HEADERS, 0, 1, REPLY_HEADERS), Frame(DATA, 0, 1)]),
    ("within a body", [settings(), *[Frame(HEADERS, END_HEADERS, 1, REPLY_HEADERS)] * 2]),
    ("too many interim responses", [settings(), *[Frame(HEADERS, END_HEADERS, 1, INTERIM_HEADERS)] * 9]),
    ("ends with an interim response", [settings(), Frame(HEADERS, END_HEADERS | END_STREAM, 1, INTERIM_HEADERS)]),
    ("too many headers", [settings(), Frame(HEADERS, END_HEADERS, 1, REPLY_HEADERS + b"\x90" * 128)]),
    ("dynamic table", [settings(), Frame(HEADERS, END_HEADERS, 1, b"\xbe")]),
    ("block is too long", [settings(), Frame(HEADERS, 0, 1, LONG_BLOCK), Frame(CONTINUATION, 0, 1, LONG_BLOCK)]),
    ("too many frames", [settings(), *[Frame(PING, 0, 0, bytes(8))] * 5000]),
    ("too many frames", [settings(), *[Frame(HEADERS, 0, 1), *[Frame(CONTINUATION, 0, 1)] * 5000]]),
    ("too many frames", [settings(), *[Frame(0xAB, 0, 0, bytes(16384))] * 20]),
    ("reply is too long", [settings(), *[Frame(DATA, 0, 1, bytes(16384))] * 7]),
]


@pytest.mark.parametrize(
    ("problem", "frames"), HOSTILE, ids=[f"{text} {index}" for index, (text, _) in enumerate(HOSTILE)]
)
def test_a_server_that_breaks_a_rule_loses_the_connection(problem: str, frames: Sequence[Frame]) -> None:
    async def story(server: _Server) -> None:
        task = await server.request()
        server.send(*frames)
        with pytest.raises(Http2Error, match=problem):
            await task
        assert server.transport.is_aborted
        assert not server.connection.is_open
        assert len(server.transport.written) < 100_000

    _play(story)


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"HTTP/1.1 400 Bad Request\r\n", "speaks HTTP/1"), (b"\x15\x03\x01\0\2\2\x46\0\0", "not speak")],
)
def test_another_protocol_is_named(data: bytes, problem: str) -> None:
    async def story(server: _Server) -> None:
        task = await server.request()
        server.connection.data_received(data)
        with pytest.raises(Http2Error, match=problem):
            await task

    _play(story)


FRAMES = st.builds(Frame, st.integers(0, 10), st.integers(0, 255), st.integers(0, 5), st.binary(max_size=40))


@given(st.lists(st.one_of(FRAMES.map(Frame.encode), st.binary(max_size=30)), max_size=30))
def test_any_bytes_end_the_connection_or_keep_it(parts: list[bytes]) -> None:
    async def story(server: _Server) -> None:
        task = await server.request(b"x" * 100)
        server.send(settings(window=20))
        for part in parts:
            server.connection.data_received(part)
        if task.done():
            assert isinstance(task.exception() or task.result(), Http2Error | Http2Reply)
        server.connection.connection_lost(None)
        await asyncio.wait([task])
        assert isinstance(task.exception() or task.result(), Http2Error | Http2Reply)

    _play(story)


BLOCKS = st.tuples(st.sampled_from(["100", "103", "1", "200", ""]), st.integers(0, 3), st.sampled_from([0, END_STREAM]))


@given(st.lists(BLOCKS, max_size=40))
def test_a_call_decodes_a_limited_number_of_header_blocks(blocks: list[tuple[str, int, int]]) -> None:
    """A block of 8 KB takes 20 milliseconds to decode."""

    async def story(server: _Server) -> None:
        task = await server.request()
        server.send(settings())
        before = decode_headers.cache_info()
        for status, value, flag in blocks:
            block = encode_headers([(":status", status), ("x", str(value))])
            server.send(Frame(HEADERS, END_HEADERS | flag, 1, block))
        after = decode_headers.cache_info()
        assert after.hits + after.misses - before.hits - before.misses <= MAX_INTERIM_RESPONSES + 2
        server.connection.connection_lost(None)
        await asyncio.wait([task])
        assert isinstance(task.exception() or task.result(), Http2Error | Http2Reply)

    _play(story)


def test_interim_responses_precede_a_reply() -> None:
    async def story(server: _Server) -> None:
        task = await server.request()
        interim = [Frame(HEADERS, END_HEADERS, 1, INTERIM_HEADERS)] * MAX_INTERIM_RESPONSES
        server.send(settings(), *interim, *grpc_reply(1, b"answer"))
        assert (await task).headers[":status"] == "200"

    _play(story)
