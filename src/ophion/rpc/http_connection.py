"""One HTTP/1.1 client: bytes to requests, results to bytes.

Two roads lead through `data_received`. A request whose head has been seen before (`PlainHeads`) is answered at once,
with one dictionary lookup in place of a parse. Everything else goes through httptools: partial reads, chunked bodies,
pipelining, `Expect: 100-continue`, cross-origin requests, health checks.

Answers leave in the order of their requests, whatever finishes first; what is ready in one turn of the loop leaves in
one write. A client that does not read its answers is not read from either.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeAlias, cast

import httptools

from ophion.rpc.access import HostList, OriginList
from ophion.rpc.backlog import Backlog
from ophion.rpc.dispatcher import Answer, Complete, Pending, Reply
from ophion.rpc.http_wire import (
    CONTINUE,
    JSON,
    Piece,
    Request,
    Response,
    chunked_head,
    json_head,
    preflight,
    response_head,
)
from ophion.rpc.places import BUSY, NEVER_ASKED
from ophion.rpc.streaming import Pump, StreamedAnswer, chunk, collected

_MAX_PIPELINED: Final = 32
_MAX_PIPELINED_BYTES: Final = 64 * 1024
"""Bodies of requests at work on one connection; large ones have large answers, so they go one by one."""
_HOST_REFUSED: Final = Response(403, (b'{"message":"Host not authorized."}',), b"application/json; charset=utf-8")
_ORIGIN_REFUSED: Final = Response(403)
_NO_PLACE_BODY: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"Too many connections"}}'
_NO_PLACE: Final = response_head(Response(503, (_NO_PLACE_BODY,), JSON), b"", False, False) + _NO_PLACE_BODY
_HALF_CLOSED_S: Final = 2.0
"""How long a client that sends nothing more is taken for one that still wants its answers."""
_STALLED_S: Final = 5.0
"""A request that has not moved for so long counts as no request when somebody else needs the place."""

Result: TypeAlias = Reply | Response | Pending[Response]
"""What an application gives: a JSON reply, now or later, or a response of its own making."""


class Application(Protocol):
    """What a service does with requests; it knows nothing of sockets."""

    plain: Callable[[bytes], Reply] | None
    """What a `POST /` is handed to, body only; None where there is no such thing."""

    def respond(self, request: Request) -> Result:
        """Any other request that passed host list and origins."""

    def close(self) -> None:
        """The service stops."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What a service allows its clients."""

    max_connections: int = 4096
    """When there are as many, the idlest gives way to a newcomer."""
    max_body_bytes: int = 16 * 1024 * 1024
    max_head_bytes: int = 64 * 1024
    read_timeout_s: float = 30.0
    """A request that has begun must be complete after this time."""
    write_timeout_s: float = 30.0
    """A client must begin to take its answers in this time."""
    idle_timeout_s: float = 600.0
    """A connection without requests is closed after this time."""


class PlainHeads:
    """Heads of plain requests, by their bytes, with the size of the body they announce.

    A head is learned only from a whole message that httptools has accepted and that leaves nothing to decide: `POST /`
    on an open HTTP/1.1 connection, an allowed host, a length, no origin, no expectation. The same bytes mean the same
    again, so a hit needs no second look.
    """

    def __init__(self, most: int = 1024, longest: int = 1024) -> None:
        self._most = most
        self._longest = longest
        self.sizes: dict[bytes, int] = {}

    def learn(self, message: bytes, body_size: int) -> None:
        """Remember the head of a message that ends with its body; when there are too many, begin anew."""
        end = message.find(b"\r\n\r\n") + 4
        if len(message) - end != body_size or end > self._longest:
            return
        if len(self.sizes) >= self._most:
            self.sizes.clear()
        self.sizes[message[:end]] = body_size


class SessionUser(Protocol):
    """A connection that works with the token of somebody."""

    def session_ended(self) -> None:
        """The token is not good any more."""


class GuardedSession(Protocol):
    """What the bearer of one token may do."""

    heads: PlainHeads

    @property
    def handle(self) -> Callable[[bytes], Reply]:
        """What the body of a `POST /` with this token is handed to, by users of the session."""

    def join(self, user: SessionUser) -> None: ...

    def leave(self, user: SessionUser) -> None: ...


class Guard(Protocol):
    """Who looks at tokens; `POST /` of a guarded service goes to the session of its header."""

    def session(self, authorization: bytes | None) -> GuardedSession: ...


@dataclass(frozen=True, slots=True)
class HttpPolicy:
    """What the connections of one service share."""

    application: Application
    hosts: HostList
    origins: OriginList
    limits: HttpLimits
    heads: PlainHeads
    opened: Callable[[HttpConnection], bool]
    """Called for a new connection; False turns it away."""
    closed: Callable[[HttpConnection], None]
    guard: Guard | None = None
    """None where no token is needed."""
    backlog: Backlog = field(default_factory=Backlog)


class _Slot:
    """The place of one answer in the order of answers."""

    __slots__ = ("extra", "is_old", "keep_alive", "parts", "pending", "size", "stream")

    def __init__(self, keep_alive: bool, is_old: bool, extra: bytes, size: int = 0) -> None:
        self.size = size
        self.keep_alive = keep_alive
        self.is_old = is_old
        self.extra = extra
        self.parts: tuple[Piece, ...] | None = None
        self.pending: Pending[Complete] | Pending[Response] | None = None
        self.stream: StreamedAnswer | None = None

    def fill(self, result: Complete | Response) -> None:
        """The answer is there: make its bytes."""
        if type(result) is Response:
            response = result
        elif type(result) is bytes:
            if self.keep_alive and not self.is_old and not self.extra and result:
                self.parts = (json_head(len(result)), result)
                return
            response = Response(200, (result,), JSON if result else None)
        elif type(result) is StreamedAnswer:
            self.stream = result
            self.parts = (chunked_head(self.extra, self.keep_alive),)
            return
        else:
            answer = cast(Answer, result)
            response = Response(answer.status, answer.parts, JSON)
        self.parts = (response_head(response, self.extra, self.keep_alive, self.is_old), *response.body)


class HttpConnection(asyncio.Protocol):
    """One client. Tests drive it in process with a transport of their own."""

    def __init__(self, policy: HttpPolicy) -> None:
        self._policy = policy
        self._plain = policy.application.plain
        self._heads = policy.heads
        self._plain_sizes = policy.heads.sizes
        self._session: GuardedSession | None = None
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[_Slot] = deque()
        self._out: list[Piece] = []
        self._last_head = b""
        self._last_end = self._last_size = -1
        self._is_plain = self._plain is not None
        self._is_ending = False
        self._must_linger = False
        self._has_sent_eof = False
        self._is_paused = False
        self._pump: Pump | None = None
        self._is_reading = True
        self._was_active = False
        self._is_known = False
        self._quiet_s = 0.0
        self._learnable_size = -1
        self._reset()
        self._in_message = self._in_head = False

    def _reset(self) -> None:
        self._in_message = self._in_head = True
        self._quiet_s = 0.0
        self._head_bytes = self._fed_bytes = 0
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._extra = b""
        self._refusal: Response | None = None
        self._keep_alive, self._is_old = True, False

    # --- called by the loop ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self._policy.opened(self):
            self._is_ending, self._is_plain = True, False
            self._transport.write(_NO_PLACE)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._policy.closed(self)
        self._policy.backlog.settle(self)
        self._is_ending, self._is_plain = True, False
        if self._session is not None:
            self._session.leave(self)
        if self._pump is not None:
            self._pump.abandon()
            self._pump = None
        for slot in self._queue:
            if slot.pending is not None:
                slot.pending.abandon()
            elif slot.stream is not None:
                slot.stream.body.close()
        self._queue.clear()

    def data_received(self, data: bytes) -> None:
        self._was_active = True
        if self._is_plain:
            # most clients send the same head again and again: comparing it costs less than finding its end
            if len(data) == self._last_size and data.startswith(self._last_head):
                end = self._last_end
                is_known = True
            else:
                end = data.find(b"\r\n\r\n") + 4
                is_known = self._plain_sizes.get(data[:end]) == len(data) - end
                if is_known:
                    self._last_head, self._last_end, self._last_size = data[:end], end, len(data)
            if is_known:
                reply = self._plain(data[end:])  # type: ignore[misc]  # there is one when the connection is plain
                if type(reply) is bytes and reply:
                    self._transport.write(json_head(len(reply)) + reply)
                else:
                    self._keep_alive, self._is_old, self._extra = True, False, b""
                    self._answer(reply)
                    self._flush()
                return
        if not self._is_ending:
            self._feed(data)

    def eof_received(self) -> bool:
        """A client that has said all it wants to say still gets the answers it waits for, when they come soon.

        One that has gone away looks the same, and its work must not go on for nobody.
        """
        self._is_ending, self._is_plain = True, False
        if self._queue:
            asyncio.get_running_loop().call_later(_HALF_CLOSED_S, self._give_up)
        return bool(self._queue)

    def _give_up(self) -> None:
        if self._queue and self._pump is None:  # writing shows soon enough whether somebody is there
            self._transport.abort()

    def pause_writing(self) -> None:
        self._is_paused, self._is_plain = True, False
        self._quiet_s = 0.0
        self._set_reading(False)
        self._policy.backlog.note(self, self._transport.get_write_buffer_size())
        if self._pump is not None:
            self._pump.pause()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._policy.backlog.settle(self)
        if self._pump is not None:
            self._pump.resume()
        self._settle()

    # --- called by the service -------------------------------------------------------------------

    def tick(self, seconds: float) -> None:
        """Some time has passed: cut off whoever is too slow or has gone quiet."""
        if self._queue and not self._is_paused:
            return  # the client waits for us
        busy = self._in_message or self._is_paused or self._is_ending
        if self._was_active and not busy:
            self._was_active, self._is_known, self._quiet_s = False, True, 0.0
            return
        self._quiet_s += seconds
        limits = self._policy.limits
        if self._is_paused:
            allowed_s = limits.write_timeout_s
        elif busy:
            allowed_s = limits.read_timeout_s
        else:
            allowed_s = limits.idle_timeout_s
        if self._quiet_s > allowed_s:
            self._transport.abort()

    def idleness(self) -> float:
        """Seconds without a request, for whoever needs the place of this connection (`Places`)."""
        if self._is_paused:
            return self._quiet_s
        if self._queue:
            return BUSY
        if self._in_message:
            return NEVER_ASKED if self._quiet_s >= _STALLED_S else 0.0
        if self._was_active:
            return 0.0
        return self._quiet_s if self._is_known else NEVER_ASKED + self._quiet_s

    def give_way(self) -> None:
        """Somebody else takes the place of this connection, which has nothing to do."""
        self._is_ending, self._is_plain = True, False
        if self._is_paused:
            self._transport.abort()
        else:
            self._transport.close()

    def session_ended(self) -> None:
        """What was learned with the token is worth nothing now: the next request is looked at."""
        self._session = self._plain = None
        self._is_plain = False

    def cut_off(self) -> None:
        """The client does not take its answers, and others need the memory."""
        self._transport.abort()

    def close(self) -> None:
        """The service stops: no more requests are taken; what has been written still leaves."""
        self._is_ending, self._is_plain = True, False
        self._transport.close()

    # --- called by httptools ---------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._reset()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > self._policy.limits.max_head_bytes:
            self._end_with(Response(431))
        else:
            self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._is_ending:
            return
        self._keep_alive = self._parser.should_keep_alive()
        self._is_old = self._parser.get_http_version() == "1.0"
        headers, policy = self._headers, self._policy
        origin = headers.get(b"origin")
        if not policy.hosts.allows(headers.get(b"host")):
            self._refusal = getattr(policy.application, "host_refused", _HOST_REFUSED)
        elif origin is not None and not policy.origins.allows(origin):
            self._refusal = _ORIGIN_REFUSED
        elif origin is not None:
            self._extra = b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\n" % origin
        if int(headers.get(b"content-length", b"0")) > policy.limits.max_body_bytes:
            self._end_with(Response(413))
        elif b"expect" in headers and not self._is_old:
            if headers[b"expect"].lower() != b"100-continue":
                self._end_with(Response(417))
            elif self._refusal is None:
                self._put((CONTINUE,))

    def on_body(self, chunk: bytes) -> None:
        self._body_bytes += len(chunk)
        if self._body_bytes > self._policy.limits.max_body_bytes:
            self._end_with(Response(413))
        elif self._refusal is None:
            self._body.append(chunk)

    def on_message_complete(self) -> None:
        self._in_message = False
        if not self._is_ending and not self._parser.should_upgrade():
            self._answer(self._refusal or self._result())

    def _result(self) -> Result:
        method = self._parser.get_method()
        path, _, query = self._target.partition(b"?")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        if method == b"OPTIONS" and self._extra and b"access-control-request-method" in self._headers:
            return preflight()
        if method == b"POST" and path == b"/" and self._policy.guard is not None:
            self._work_with(self._policy.guard.session(self._headers.get(b"authorization")))
        if method == b"POST" and path == b"/" and self._plain is not None:
            if self._is_learnable():
                self._learnable_size = len(body)
            return self._plain(body)
        return self._policy.application.respond(Request(method, path, query, self._headers, body))

    def _work_with(self, session: GuardedSession) -> None:
        if session is self._session:
            return
        if self._session is not None:
            self._session.leave(self)
        session.join(self)
        self._session = session
        self._plain, self._heads, self._plain_sizes = session.handle, session.heads, session.heads.sizes
        self._last_size = -1  # the last head came with another token

    def _is_learnable(self) -> bool:
        unusual = (b"expect", b"transfer-encoding", b"upgrade")
        if self._policy.guard is None and b"authorization" in self._headers:
            return False  # nobody needs it here, so it is not kept either
        is_usual = self._keep_alive and not self._is_old and not self._extra and self._target == b"/"
        return is_usual and b"content-length" in self._headers and self._headers.keys().isdisjoint(unusual)

    # --- reading ---------------------------------------------------------------------------------

    def _feed(self, data: bytes) -> None:
        was_plain, self._learnable_size = self._is_plain, -1
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._parser.get_method() != b"CONNECT":
                self._feed(self._without_upgrade() + data[upgrade.args[0] :])
                return
            self._end_with(Response(405))
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except httptools.HttpParserError:
            self._end_with(Response(400))
        if was_plain and self._learnable_size >= 0 and not self._in_message:
            self._heads.learn(data, self._learnable_size)
        if self._in_head:
            self._fed_bytes += len(data)
            if self._fed_bytes > self._policy.limits.max_head_bytes:
                self._end_with(Response(431))
        self._flush()

    def _without_upgrade(self) -> bytes:
        """The head again without its wish for another protocol, which this server may ignore; some clients always ask.

        The parser has taken everything after the head for that other protocol, so it has to be fed anew.
        """
        kept = [(name, value) for name, value in self._headers.items() if name not in (b"upgrade", b"connection")]
        method, self._parser = self._parser.get_method(), httptools.HttpRequestParser(self)
        lines = b"".join(b"%b: %b\r\n" % header for header in kept)
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (method, self._target, lines)

    def _end_with(self, response: Response) -> None:
        """Answer before the request is complete and read nothing more.

        The connection is closed for writing only, and what the client still sends is thrown away: closing it altogether
        would make the other side drop the answer together with the connection.
        """
        if self._is_ending:
            return
        self._keep_alive = False
        self._must_linger = True
        self._answer(response)

    # --- writing ---------------------------------------------------------------------------------

    def _answer(self, result: Result) -> None:
        slot = _Slot(self._keep_alive, self._is_old, self._extra, self._body_bytes)
        if not self._keep_alive:
            self._is_ending, self._is_plain = True, False
        if type(result) is Pending:
            slot.pending = result
            result.deliver = partial(self._receive, slot)
            self._queue.append(slot)
            return
        if type(result) is StreamedAnswer and slot.is_old:
            self._answer(self._whole(result))
            return
        slot.fill(cast("Complete | Response", result))
        if self._queue or slot.stream is not None:
            self._queue.append(slot)
        else:
            self._put(cast("tuple[Piece, ...]", slot.parts))

    def _receive(self, slot: _Slot, reply: Complete | Response) -> None:
        if type(reply) is StreamedAnswer and slot.is_old:
            whole = slot.pending = self._whole(reply)
            whole.deliver = partial(self._receive, slot)
            return
        slot.pending = None
        slot.fill(reply)
        self._flush()

    def _whole(self, answer: StreamedAnswer) -> Pending[Complete]:
        """A streamed answer for a client that knows no chunks: put together, or the end of the connection."""
        task = asyncio.get_running_loop().create_task(collected(answer))
        pending: Pending[Complete] = Pending(task.cancel)

        def finish(done: asyncio.Task[bytes]) -> None:
            if not done.cancelled():
                if done.exception() is None:
                    pending.resolve(done.result())
                else:
                    self._transport.abort()

        task.add_done_callback(finish)
        return pending

    def _streamed(self) -> None:
        """The answer at the head of the queue has been sent."""
        self._pump = None
        self._queue.popleft()
        self._flush()

    def _put(self, parts: tuple[Piece, ...]) -> None:
        """Bytes for the next write; behind answers that are not there yet they wait for their turn."""
        if not self._queue:
            self._out.extend(parts)
            return
        slot = _Slot(True, False, b"")
        slot.parts = parts
        self._queue.append(slot)

    def _flush(self) -> None:
        queue, out = self._queue, self._out
        while queue and queue[0].parts is not None:
            if queue[0].stream is not None:
                break
            out.extend(queue.popleft().parts or ())
        stream = None
        if queue and queue[0].parts is not None and queue[0].stream is not None:
            out.extend(queue[0].parts)
            queue[0].parts, stream = None, queue[0].stream
        if out:
            if len(out) == 1:
                self._transport.write(out[0])
            else:
                self._transport.writelines(out)
            self._out = []
            if self._is_paused:
                self._policy.backlog.note(self, self._transport.get_write_buffer_size())
        if stream is not None:
            self._pump = Pump(self._transport, stream, chunk, self._streamed)
        self._settle()

    def _settle(self) -> None:
        """Decide what may happen next on this connection."""
        if not self._is_ending:
            self._set_reading(not self._is_paused and (not self._queue or self._has_room()))
            self._is_plain = self._plain is not None and not (self._in_message or self._queue or self._is_paused)
        elif not self._queue and not self._transport.is_closing():
            if not self._must_linger:
                self._transport.close()
            elif not self._has_sent_eof:
                self._has_sent_eof = True
                if self._transport.can_write_eof():
                    self._transport.write_eof()
                else:
                    self._transport.close()  # TLS knows no half-closed connections

    def _has_room(self) -> bool:
        queue = self._queue
        return len(queue) < _MAX_PIPELINED and sum(slot.size for slot in queue) < _MAX_PIPELINED_BYTES

    def _set_reading(self, wanted: bool) -> None:
        if wanted != self._is_reading and not self._transport.is_closing():
            self._is_reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
