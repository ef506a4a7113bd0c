"""Tests WebSocket connections in process, with wsproto as the client."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.messages import Response
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.replies import Reply
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.rpc.transport.streaming import StreamedAnswer, StreamedResult, StreamLimit
from ophion.rpc.transport.websocket.connection import WebSocketConnection
from ophion.rpc.transport.websocket.policy import WebSocketLimits, WebSocketPolicy
from ophion.runtime.chunked_body import PORTION_BYTES
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.memory_budget import MemoryBudget
from ophion.runtime.thread_pools import InlineLane
from tests.unit.rpc.transport.test_replies import Rest
from tests.unit.rpc.wire import Context, MemoryTransport, dispatcher, patient


class Client:
    """A WebSocket client of one protocol object."""

    def __init__(self, context: Context, **options: Any) -> None:
        self.transport = MemoryTransport(options.pop("is_encrypted", False))
        self.closed: list[WebSocketConnection] = []
        self.shared = options.pop("shared", None) or patient()
        policy = WebSocketPolicy(
            dispatcher(context, asyncio.get_running_loop(), "ws"),
            HostList(["localhost"]),
            OriginList(options.pop("origins", ())),
            WebSocketLimits(**options),
            lambda connection: True,
            self.closed.append,
            shared=self.shared,
        )
        self.server = WebSocketConnection(policy)
        self.server.connection_made(self.transport)
        self.protocol = WSConnection(ConnectionType.CLIENT)

    def open(self, host: str = "localhost:8546", **options: Any) -> list[Event]:
        return self.exchange(Request(host=host, target="/any/path", **options))

    def exchange(self, *events: Event) -> list[Event]:
        self.server.data_received(b"".join(self.protocol.send(event) for event in events))
        return self.received()

    def received(self) -> list[Event]:
        self.protocol.receive_data(self.transport.take())
        return list(self.protocol.events())

    def ask(self, name: str, *params: Any, id: Any = 1) -> Any:
        (answer,) = self.exchange(TextMessage(data=json.dumps({"id": id, "method": name, "params": params})))
        assert isinstance(answer, TextMessage)
        return json.loads(answer.data)


def run(test: Callable[[Client, Context], Awaitable[None] | None], **options: Any) -> None:
    async def main() -> None:
        context = Context()
        outcome = test(Client(context, **options), context)
        if outcome is not None:
            await outcome

    asyncio.run(main())


def test_requests_are_answered_on_any_path() -> None:
    def story(client: Client, context: Context) -> None:
        assert [type(event) for event in client.open()] == [AcceptConnection]
        assert client.ask("eth_blockNumber") == {"jsonrpc": "2.0", "id": 1, "result": "0x20"}

    run(story)


def test_the_same_rules_as_over_http_hold_for_errors() -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        assert client.ask("admin_peers")["error"]["code"] == -32604
        assert client.ask("eth_nonsense")["error"]["code"] == -32601
        assert client.ask("eth_getBalance", 5)["error"]["code"] == -32602
        (answer,) = client.exchange(TextMessage(data="{"))
        assert json.loads(answer.data)["error"]["code"] == -32700  # type: ignore[attr-defined]
        (answer,) = client.exchange(TextMessage(data='[{"id":1,"method":"eth_blockNumber"}]'))
        assert json.loads(answer.data) == [{"jsonrpc": "2.0", "id": 1, "result": "0x20"}]  # type: ignore[attr-defined]
        assert client.exchange(TextMessage(data='{"method":"eth_blockNumber"}')) == []

    run(story)


def test_a_binary_message_is_taken_for_text() -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        (answer,) = client.exchange(BytesMessage(data=b'{"id":1,"method":"eth_blockNumber"}'))
        assert isinstance(answer, TextMessage)

    run(story)


def test_a_message_may_come_in_several_frames() -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        text = '{"id":1,"method":"eth_blockNumber"}'
        parts = [TextMessage(data=text[:9], message_finished=False), TextMessage(data=text[9:])]
        assert len(client.exchange(*parts)) == 1

    run(story)


def test_answers_come_when_they_are_ready() -> None:
    async def story(client: Client, context: Context) -> None:
        client.open()
        assert client.exchange(TextMessage(data='{"id":1,"method":"eth_wait"}')) == []
        assert client.ask("eth_blockNumber", id=2)["id"] == 2
        assert context.gate is not None
        context.gate.set_result(1)
        for _ in range(20):
            await asyncio.sleep(0)
        (answer,) = client.received()
        assert json.loads(answer.data)["id"] == 1  # type: ignore[attr-defined]

    run(story)


def test_a_method_can_talk_back() -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        notification, answer = client.exchange(TextMessage(data='{"id":1,"method":"eth_tell","params":["hello"]}'))
        assert notification.data == "hello"  # type: ignore[attr-defined]
        assert json.loads(answer.data)["result"] is True  # type: ignore[attr-defined]

    run(story)


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536, 200_000])
def test_frames_of_every_size_are_understood(size: int) -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        client.server.notify(b"x" * size)
        events = client.received()
        assert "".join(event.data for event in events) == "x" * size  # type: ignore[attr-defined]

    run(story)


def test_the_sub_protocol_undefined_is_confirmed() -> None:
    def story(client: Client, context: Context) -> None:
        (accepted,) = client.open(subprotocols=["undefined"])
        assert isinstance(accepted, AcceptConnection)
        assert accepted.subprotocol == "undefined"

    run(story)


def test_a_host_that_is_not_listed_is_refused() -> None:
    def story(client: Client, context: Context) -> None:
        rejected, *body = client.open(host="evil.example")
        assert isinstance(rejected, RejectConnection)
        assert rejected.status_code == 403
        assert b"".join(part.data for part in body if isinstance(part, RejectData)) == (
            b'{"message":"Host not authorized."}'
        )
        assert client.transport.is_closed

    run(story)


def test_plain_http_gets_an_error() -> None:
    def story(client: Client, context: Context) -> None:
        client.server.data_received(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
        assert client.transport.written.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert client.transport.written.endswith(b"Websocket endpoint can't handle HTTP requests")
        assert client.transport.is_closed

    def login(client: Client, context: Context) -> None:
        client.server.data_received(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        assert client.transport.written.startswith(b"HTTP/1.1 400 Authentication not enabled\r\n")

    run(story)
    run(login)


def test_a_handshake_without_end_is_refused() -> None:
    def story(client: Client, context: Context) -> None:
        client.server.data_received(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(10):
            client.server.data_received(b"y" * 10_000)
        assert client.transport.is_closed

    run(story)


def test_pings_are_answered_and_a_close_is_confirmed() -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        (pong,) = client.exchange(Ping(payload=b"p"))
        assert isinstance(pong, Pong)
        (closed,) = client.exchange(CloseConnection(code=1000))
        assert isinstance(closed, CloseConnection)
        assert client.transport.is_closed

    run(story)


def test_messages_too_large_end_the_connection() -> None:
    def frame(client: Client, context: Context) -> None:
        client.open()
        (closed,) = client.exchange(TextMessage(data="x" * 101))
        assert isinstance(closed, CloseConnection)
        assert closed.code == 1009

    def message(client: Client, context: Context) -> None:
        client.open()
        parts = [TextMessage(data="x" * 90, message_finished=False) for _ in range(3)]
        (closed,) = client.exchange(*parts)
        assert isinstance(closed, CloseConnection)
        assert closed.code == 1009

    run(frame, max_frame_bytes=100)
    run(message, max_frame_bytes=100, max_message_bytes=200)


def test_a_client_that_does_not_read_its_notifications_is_cut_off() -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        client.transport.unread = 1001
        client.server.notify(b"x")
        assert client.transport.is_aborted

    run(story, max_unread_bytes=1000)


def test_an_evicted_client_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        client.transport.unread = 1001
        for _ in range(100):  # send a hundred notifications before the event loop handles the socket
            client.server.notify(b"x")

    run(story, max_unread_bytes=1000)
    assert len(caplog.records) == 1


def test_a_client_that_takes_a_long_answer_slowly_is_not_cut_off_until_it_takes_nothing() -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        client.transport.unread = 8_000_000
        client.server.pause_writing()
        for _ in range(40):
            client.transport.unread -= 100_000
            client.server.tick(5.0)
        assert not client.transport.is_aborted
        for _ in range(7):
            client.server.tick(5.0)
        assert client.transport.is_aborted

    run(story)


@pytest.mark.parametrize("unread", [0, 1])
def test_an_evicted_connection_is_closed_gracefully_only_without_unread_input(unread: int) -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        client.transport.unread = unread
        client.server.evict()
        assert client.transport.is_closed
        assert client.transport.is_aborted == bool(unread)

    run(story)


def test_a_client_with_a_full_buffer_is_not_read_from() -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        client.server.pause_writing()
        assert client.transport.is_reading_paused
        client.server.resume_writing()
        assert not client.transport.is_reading_paused

    run(story)


def test_a_silent_client_is_pinged_and_then_given_up() -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        for _ in range(6):
            client.server.tick(5.0)
        assert [type(event) for event in client.received()] == [Ping]
        for _ in range(18):
            client.server.tick(5.0)
        assert not client.transport.is_aborted
        client.server.tick(5.0)
        assert client.transport.is_aborted

    run(story)


def test_a_lost_connection_is_reported_and_its_requests_given_up() -> None:
    async def story(client: Client, context: Context) -> None:
        client.open()
        client.exchange(TextMessage(data='{"id":1,"method":"eth_wait"}'))
        await asyncio.sleep(0)
        client.server.connection_lost(None)
        for _ in range(3):
            await asyncio.sleep(0)
        assert client.closed == [client.server]
        assert context.gate is not None
        assert context.gate.cancelled()

    run(story)


def test_stopping_says_goodbye() -> None:
    def story(client: Client, context: Context) -> None:
        client.open()
        client.server.close()
        (closed,) = client.received()
        assert isinstance(closed, CloseConnection)
        assert closed.code == 1001

    run(story)


def raw(first: int, payload: bytes = b"") -> bytes:
    """Return a frame with a mask of zeros."""
    assert len(payload) < 126
    return bytes((first, 0x80 | len(payload))) + bytes(4) + payload


def code_of(events: list[Event]) -> int | None:
    closed = [event for event in events if isinstance(event, CloseConnection)]
    return closed[0].code if closed else None


def test_a_page_may_open_a_socket_only_where_it_may_call_over_http() -> None:
    def open_from(client: Client, origin: bytes) -> Event:
        return client.open(extra_headers=[(b"Origin", origin)])[0]

    def closed(client: Client, context: Context) -> None:
        rejected = open_from(client, b"https://evil.example")
        assert isinstance(rejected, RejectConnection)
        assert rejected.status_code == 403
        assert client.transport.is_closed

    def opened(client: Client, context: Context) -> None:
        assert isinstance(open_from(client, b"https://page.example"), AcceptConnection)

    run(closed)
    run(closed, origins=["https://page.example"])
    run(opened, origins=["https://page.example"])
    run(opened, origins=["*"])


async def until_quiet(client: Client) -> list[Event]:
    """Return all events after the connection has processed all input."""
    events: list[Event] = []
    for _ in range(2000):
        events += client.received()
        if client.transport.is_closed or not len(client.shared.scheduler):
            break
        await asyncio.sleep(0)
    return events


def test_a_client_that_only_pings_is_closed() -> None:
    async def story(client: Client, context: Context) -> None:
        client.open()
        client.server.data_received(raw(0x89) * 100)
        assert [type(event) for event in await until_quiet(client)] == [Pong] * 4, "one for those that come together"
        client.server.data_received(raw(0x8A) * 10_000)
        assert code_of(await until_quiet(client)) == 1008

    run(story)


def test_pings_now_and_then_are_welcome() -> None:
    async def story(client: Client, context: Context) -> None:
        client.open()
        for _ in range(100):
            client.server.data_received(raw(0x89, b"x") * 20)
            client.server.tick(5.0)
        assert code_of(await until_quiet(client)) is None
        assert not client.transport.is_closed

    run(story)


@pytest.mark.parametrize("piece", [b"", b" "])
def test_a_message_in_crumbs_is_refused(piece: bytes) -> None:
    async def story(client: Client, context: Context) -> None:
        client.open()
        client.server.data_received(raw(0x01, b"[") + raw(0x00, piece) * 20_000)
        assert code_of(await until_quiet(client)) == 1008

    run(story)


def test_many_messages_are_answered_in_turns_and_nothing_is_read_meanwhile() -> None:
    async def story(client: Client, context: Context) -> None:
        client.open()
        client.server.data_received(raw(0x81, b"{}") * 3000)
        first = len(client.received())
        assert 0 < first < 3000
        assert client.transport.is_reading_paused
        events = await until_quiet(client)
        assert first + len(events) == 3000
        assert not client.transport.is_reading_paused

    run(story, shared=patient(0.0))


def test_a_message_that_does_not_end_counts_and_goes_when_there_is_too_much() -> None:
    shared = SharedResources(MemoryBudget(300_000), patient().scheduler)

    async def story(client: Client, context: Context) -> None:
        others = [Client(context, shared=shared) for _ in range(3)]
        for one in (client, *others):
            one.open()
            one.server.data_received(b"\x01\xff" + (100_000).to_bytes(8, "big") + bytes(4) + b" " * 90_000)
        assert code_of(client.received()) == 1013, "the one that has held it longest"
        assert 0 < shared.budget.held <= 300_000
        assert [one.transport.is_closed for one in others] == [False] * 3
        for one in others:
            one.server.connection_lost(None)
        assert shared.budget.held == 0

    run(story, shared=shared)


def test_frames_may_come_with_the_handshake() -> None:
    async def story(client: Client, context: Context) -> None:
        hello = client.protocol.send(Request(host="localhost", target="/"))
        client.server.data_received(hello + raw(0x81, b'{"id":1,"method":"eth_blockNumber"}'))
        events = await until_quiet(client)
        assert [type(event) for event in events] == [AcceptConnection, TextMessage]

    run(story)


def test_handshakes_take_turns_and_nothing_is_read_meanwhile() -> None:
    """Of many simultaneous handshakes, the current time slice handles some, and the others wait for the next time
    slice.
    """

    async def story(client: Client, context: Context) -> None:
        client.shared.scheduler.spend(math.inf)
        client.server.data_received(client.protocol.send(Request(host="localhost", target="/")))
        assert client.transport.take() == b""
        assert client.transport.is_reading_paused
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [type(event) for event in client.received()] == [AcceptConnection]
        assert not client.transport.is_reading_paused
        assert client.ask("eth_blockNumber")["result"] == "0x20"

    run(story, shared=SharedResources(scheduler=FairScheduler(turn_s=1e6)))


def test_a_handshake_that_waits_is_forgotten_with_its_connection() -> None:
    async def story(client: Client, context: Context) -> None:
        client.shared.scheduler.spend(math.inf)
        client.server.data_received(client.protocol.send(Request(host="localhost", target="/")))
        client.server.connection_lost(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert client.transport.take() == b""

    run(story, shared=SharedResources(scheduler=FairScheduler(turn_s=1e6)))


class Changing(MemoryTransport):
    """A transport whose protocol can be replaced."""

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Do nothing, because the test calls the new protocol itself."""


class Logins:
    """An application for logins."""

    plain = None

    def respond(self, request: Any) -> Response:
        return Response(401)

    def close(self) -> None:
        """Do nothing."""


def test_a_connection_that_came_to_log_in_is_not_kept_until_garbage_is_collected() -> None:
    async def main() -> weakref.ref[WebSocketConnection]:
        client = Client(Context())
        policy = replace(client.server._policy, login=Logins())
        server, transport = WebSocketConnection(policy), Changing()
        server.connection_made(transport)
        server.data_received(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        assert transport.take().startswith(b"HTTP/1.1 401")
        http = server._http
        assert http is not None
        http.connection_lost(None)
        assert client.closed == [server]
        client.closed.clear()
        return weakref.ref(server)

    gc.disable()
    try:
        assert asyncio.run(main())() is None
    finally:
        gc.enable()


def test_a_handshake_that_does_not_end_counts() -> None:
    def story(client: Client, context: Context) -> None:
        client.server.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000)
        assert client.shared.budget.held >= 20_000
        client.server.connection_lost(None)
        assert client.shared.budget.held == 0

    run(story)


class FloodGuard:
    """A worker that waits for a time slice."""

    def work(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("has_many_waiting", [False, True])
def test_with_many_waiting_a_long_message_waits_for_its_time_slice(has_many_waiting: bool) -> None:
    scheduler = FairScheduler(turn_s=1e6)

    async def story(client: Client, context: Context) -> None:
        client.open()
        for _ in range(32 if has_many_waiting else 1):
            scheduler.wait(FloodGuard())
        asked = json.dumps({"id": 1, "method": "echo", "params": ["x" * 100_000]})
        data = client.protocol.send(TextMessage(data=asked))
        client.server.data_received(data[:1000])
        assert not client.transport.is_reading_paused, "that is not much yet"
        client.server.data_received(data[1000:50_000])
        assert client.transport.is_reading_paused is has_many_waiting
        while client.transport.is_reading_paused:  # noqa: ASYNC110
            await asyncio.sleep(0)
        client.server.data_received(data[50_000:])
        while not client.transport.written:  # noqa: ASYNC110  # a worker thread reads long messages
            await asyncio.sleep(0)
        assert not client.transport.is_reading_paused
        (answer,) = client.received()
        assert isinstance(answer, TextMessage)

    run(story, shared=SharedResources(scheduler=scheduler))


class Slow:
    """The body of a slow answer."""

    first, weight, max_bytes = b'"a', 0, 100

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()

    async def next(self) -> bytes | None:
        await self.goes_on.wait()
        return None

    def close(self) -> None:
        self.goes_on.set()


class Streaming:
    """Answers every request with a slow stream."""

    def __init__(self, body: Slow) -> None:
        self._body = body

    def handle(self, message: bytes, connection: WebSocketConnection) -> Reply:
        return StreamedAnswer(b"1", b'{"result":', self._body, b'"}')

    def close(self) -> None:
        """Do nothing."""


def test_what_waits_behind_a_slow_answer_is_counted_until_it_is_sent() -> None:
    async def story() -> None:
        body, transport, shared = Slow(), MemoryTransport(), patient()
        policy = WebSocketPolicy(
            Streaming(body),
            HostList(["localhost"]),
            OriginList(()),
            WebSocketLimits(max_unread_bytes=200_000),
            lambda opened: True,
            lambda closed: None,
            shared=shared,
        )
        server, client = WebSocketConnection(policy), WSConnection(ConnectionType.CLIENT)
        server.connection_made(transport)
        server.data_received(client.send(Request(host="localhost", target="/")))
        client.receive_data(transport.take())
        server.data_received(client.send(TextMessage(data="{}")))
        server.pause_writing()
        for _ in range(3):
            server.notify(b"x" * 50_000)
            assert not transport.is_aborted
        assert shared.budget.held == 150_000
        body.goes_on.set()
        server.resume_writing()
        for _ in range(10):
            await asyncio.sleep(0)
        assert transport.written.count(b"x") == 150_000
        server.pause_writing()
        server.notify(b"y" * 10_000)
        assert shared.budget.held == 0, "nothing waits but in the transport, which is a dummy here"
        server.connection_lost(None)

    asyncio.run(story())


def test_long_messages_are_encrypted_in_portions_and_others_wait_behind_them() -> None:
    long = b'"' + b"ab" * 200_000 + b'"'

    async def story(client: Client, context: Context) -> None:
        client.open()
        client.server.notify(b"first")
        client.server.notify(long)
        assert [event.data for event in client.received()] == ["first"]  # type: ignore[attr-defined]
        client.server.notify(b"last")
        client.server.pause_writing()
        events = client.exchange(Ping(payload=b"are you there"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert 0 < len(client.transport.written) <= PORTION_BYTES + 20, "nobody takes it"
        events += client.received()
        client.server.resume_writing()
        events += client.exchange(Ping(payload=b"and now"))
        for _ in range(100):
            await asyncio.sleep(0)
        events += client.received()
        assert [event.payload for event in events if isinstance(event, Pong)] == [b"and now"]
        texts = [event for event in events if isinstance(event, TextMessage)]
        assert "".join(text.data for text in texts) == long.decode() + "last"
        assert [text.data for text in texts if text.message_finished] == ["", "last"]

    run(story, is_encrypted=True)


def test_a_stream_that_begins_behind_something_unread_waits_for_its_client() -> None:
    async def story(client: Client, context: Context) -> None:
        client.open()
        client.server.pause_writing()
        body = StreamedResult(b"[1", Rest(*[b",2"] * 100, b"]"), InlineLane("trace"), StreamLimit())
        client.server._send(StreamedAnswer(b"1", b'{"result":', body, b"}"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert client.transport.take().count(b",2") == 0
        client.server.resume_writing()
        for _ in range(10):
            await asyncio.sleep(0)
        assert client.transport.take().count(b",2") > 0

    run(story)
