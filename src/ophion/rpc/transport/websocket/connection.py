"""One WebSocket client: requests, answers and notifications (json-rpc.md 1.9).

    socket -> Handshake -> FairScheduler -> FrameReader -> MessageHandler -> text frames, in completion order

A connection is the `Caller` of its requests; subscriptions send through its `notify`. A connection parses frames for
one time slice in each iteration of the loop. Remaining input waits for the next slice, and until then the connection
reads no more. Under load, a long message also waits for a time slice before each read.

Two rules protect the node from slow readers. While the send buffer is full, the node reads no more requests of the
client. When the unread notifications exceed a limit, the node closes the connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from time import perf_counter
from typing import Final, cast

from ophion.native.messages import FrameReader
from ophion.rpc.transport.connection_slots import BUSY, WITHOUT_REQUEST
from ophion.rpc.transport.graceful_close import GracefulClose
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.messages import TEXT, Response, response_head
from ophion.rpc.transport.http.policy import Application, HttpLimits, HttpPolicy
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.remote_end import address_of, is_encrypted
from ophion.rpc.transport.replies import Complete, PendingReply
from ophion.rpc.transport.slow_reader import SlowReaderCheck
from ophion.rpc.transport.streaming import AnswerWriter, BareAnswer, PieceStream, StreamedAnswer, fragments
from ophion.rpc.transport.websocket.framing import PING, CloseCode, closing, pong, text_head
from ophion.rpc.transport.websocket.handshake import MAX_BYTES, Handshake
from ophion.rpc.transport.websocket.policy import ConnectionSession, WebSocketPolicy
from ophion.runtime.chunked_body import PORTION_BYTES, EncryptedReplyPieces
from ophion.runtime.fair_scheduler import LoopShare

logger = logging.getLogger(__name__)

_PING_AFTER_S: Final = 30.0
_MAX_OPEN_REQUESTS: Final = 128
_MAX_OPEN_BYTES: Final = 256 * 1024
"""Maximum bytes of open requests of one connection. Above this limit, the next message waits."""
_CLOSE_TIMEOUT_S: Final = 8.0
"""Seconds that a client has to close the connection after a protocol violation."""
_MAX_CONTROLS: Final = 512
"""Maximum number of pings and pongs that a client may send between two ticks of the timer."""
_FRAMES_PER_CHECK: Final = 32
"""Number of frames that are parsed between two checks of the time slice."""
_LONG_MESSAGE_BYTES: Final = 16 * 1024
_READ_COST_S: Final = 75e-6
"""Processor time that one read costs in the event loop. The scheduler cannot measure this time."""
_UNSENT_BYTES: Final = 8 * 1024
_MAX_UNAUTHENTICATED_BYTES: Final = 64 * 1024
"""Maximum message size of a client that may call no method."""
_WEIGHT_OF_A_BYTE: Final = 8
_CLOSE, _PINGED = 0x8, 0x9
_LOGIN: Final = b"POST /login"
_TOO_MANY_CONNECTIONS: Final = Response(503, (b"Too many connections",), TEXT)
_NO_LOGIN: Final = Response(400, reason=b"Authentication not enabled")


class WebSocketConnection(asyncio.Protocol):
    """The connection of one WebSocket client, from handshake to close."""

    def __init__(self, policy: WebSocketPolicy) -> None:
        self._policy = policy
        self._scheduler = policy.shared.scheduler
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._handshake = Handshake()
        self._frames: FrameReader = cast(FrameReader, None)
        self._first = b""
        """The first bytes of the handshake, while they may be a login."""
        self._handshake_input = b""
        """Handshake bytes that wait for a time slice."""
        self._rest = b""
        """Frame bytes that wait for a time slice."""
        self._is_scheduled = False
        self._share = LoopShare()
        self._is_encrypted = False
        self._is_open = False
        self._is_closed = False
        self._is_paused = False
        self._is_reading = True
        self._controls = 0
        self._requests: dict[PendingReply[Complete], int] = {}
        self._pump: AnswerWriter | None = None
        self._behind: deque[Complete] = deque()
        self._behind_bytes = 0
        """Size of the messages queued behind a streamed answer. Stored as a sum, because each notification reads this
        size.
        """
        self._silent_s = 0.0
        self._idle_s = 0.0
        self._unread_s = 0.0
        self._reader_check = SlowReaderCheck()
        self._session: ConnectionSession | None = None
        self._http: HttpConnection | None = None
        self._graceful_close: GracefulClose | None = None

    # --- called by the event loop ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._is_encrypted = is_encrypted(transport)
        self._transport.set_write_buffer_limits(_UNSENT_BYTES)
        if not self._policy.opened(self):
            self._refuse(_TOO_MANY_CONNECTIONS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open, self._is_closed = False, True
        self._handshake.close()
        self._rest = self._handshake_input = b""
        if self._session is not None:
            self._session.leave(self)
        for pending in tuple(self._requests):
            pending.abandon()
        self._requests.clear()
        self._end_stream()
        self._behind.clear()
        self._behind_bytes = 0
        self._policy.behind.discard(self)
        self._policy.shared.budget.settle(self)
        self._policy.closed(self)

    def data_received(self, data: bytes) -> None:
        if self._is_closed:
            if self._graceful_close is not None:
                self._graceful_close.receive(len(data))
            return
        self._silent_s = 0.0
        if not self._is_open:
            self._handshake_input += data
            if not self._scheduler.is_over:
                self.work()
            elif not self._is_scheduled:
                # let handshakes wait for the scheduler, because a burst of handshakes would block the event loop
                self._is_scheduled = True
                self._set_reading(False)
                self._scheduler.wait(self, self._share.rank(len(data)))
                self._report_memory()
        elif self._rest or self._scheduler.is_over:
            self._rest += data
            self._settle()
        else:
            self._rest = data
            self._parse()
            if self._is_long and self._scheduler.has_many_waiting:
                self._schedule()
            self._settle()

    def pause_writing(self) -> None:
        self._is_paused, self._unread_s = True, 0.0
        self._reader_check.begin(self._transport.get_write_buffer_size())
        self._policy.behind.add(self)
        if self._pump is not None:
            self._pump.pause()
        self._settle()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._policy.behind.discard(self)
        if self._pump is not None:
            self._pump.resume()
        self._settle()

    # --- called by the service and by subscriptions ----------------------------------------------

    def notify(self, message: bytes) -> None:
        """Send a notification. If too many notifications are unread, close the connection."""
        if not self._is_open:
            return
        unread = self._transport.get_write_buffer_size() + self._unsent_bytes
        self._idle_s = 0.0
        if unread > self._policy.unread_capacity():
            logger.warning("websocket client disconnected reason=unread-notifications unread_bytes=%d", unread)
            # mark the connection as closed, so that later notifications do not close it again
            self._is_open, self._is_closed = False, True
            self._transport.abort()
            return
        self._send(message)
        if self._is_paused:
            self._report_memory()

    @property
    def client(self) -> str:
        """Return the name in the client's token, or the client's IP address."""
        name = None if self._session is None else self._session.client
        return name or address_of(self._transport)

    def tick(self, seconds: float) -> None:
        """Check timeouts and send pings."""
        if self._http is not None:
            self._http.tick(seconds)
            return
        limits = self._policy.limits
        before, self._silent_s = self._silent_s, self._silent_s + seconds
        self._idle_s += seconds
        self._unread_s += seconds
        self._controls = 0
        if self._is_paused and self._reader_check.has_read_enough(self._transport.get_write_buffer_size()):
            # unread data delays the pongs of a client, so do not count its silence as a timeout
            before = self._unread_s = self._silent_s = 0.0
        if self._is_paused and self._unread_s > limits.write_timeout_s:
            logger.warning("websocket client disconnected reason=slow-reader unread_s=%.0f", self._unread_s)
            self._transport.abort()
        elif self._is_closed:
            if self._silent_s > _CLOSE_TIMEOUT_S:
                self._transport.abort()
        elif not self._is_open and self._idle_s > limits.handshake_timeout_s:
            self._refuse(Response(408))
        elif self._silent_s > limits.silence_timeout_s:
            self._transport.abort()
        elif self._is_open and int(before / _PING_AFTER_S) < int(self._silent_s / _PING_AFTER_S):
            self._transport.write(PING)

    def idleness(self) -> float:
        """Return the seconds without requests and notifications. `ConnectionSlots` evicts the idlest connection."""
        if self._http is not None:
            return self._http.idleness()
        if not self._is_open:
            return WITHOUT_REQUEST + self._idle_s
        return BUSY if self._requests and not self._is_paused else self._idle_s

    def evict(self) -> None:
        """Close this idle connection in favour of a new connection."""
        if self._transport.get_write_buffer_size() or not self._is_open:
            self._transport.abort()  # abort the connection, because a slow reader would keep it open
        else:
            self.close(CloseCode.TRY_AGAIN_LATER)

    def cut_off(self) -> None:
        """Free the memory of this connection, because all clients together exceed the memory budget."""
        self._rest, self._frames = b"", FrameReader(0, 0)
        self.evict()

    def session_ended(self) -> None:
        """Close the connection, because its token is no longer valid."""
        self.close(CloseCode.POLICY, "Token expired")

    def close(self, code: int = CloseCode.GOING_AWAY, reason: str = "") -> None:
        """Close the connection with a close frame."""
        if self._is_open:
            self._transport.write(closing(code, reason))
        self._is_open, self._is_closed = False, True
        self._rest = b""
        self._end_stream()
        self._transport.close()

    def _end_with(self, code: int, reason: str = "") -> None:
        """Send a close frame after a protocol violation, and discard further input."""
        if self._is_open:
            self._transport.write(closing(code, reason))
            self._is_open, self._is_closed, self._silent_s = False, True, 0.0
            self._end_stream()
            self._graceful_close = GracefulClose(self._transport, self._scheduler)

    # --- the handshake ---------------------------------------------------------------------------

    def _continue_handshake(self) -> None:
        hello, self._handshake_input = self._handshake_input, b""
        if self._is_closed:
            return
        begun = perf_counter()
        self._set_reading(True)
        self._read_handshake(hello)
        self._scheduler.end(begun, self._share)
        if not (self._is_open or self._has_ended()) and self._http is None:
            self._report_memory()

    def _read_handshake(self, data: bytes) -> None:
        login = self._policy.login
        if len(self._first) < len(_LOGIN):
            self._first += data[: len(_LOGIN)]
            if _LOGIN.startswith(self._first[: len(_LOGIN)]):
                self._rest += data
                if len(self._first) < len(_LOGIN):
                    return
                if login is None:
                    self._refuse(_NO_LOGIN)
                else:
                    self._become_http(login)
                return
            data, self._rest = self._rest + data, b""
        found = self._handshake.feed(data)
        if isinstance(found, int):
            refusal = self._handshake.refusal(self._policy.hosts, self._policy.origins)
            if refusal is None:
                self._open(data[found:])
                return
            found = refusal
        if found is not None:
            self._refuse(found)

    def _open(self, rest: bytes) -> None:
        limits, guard = self._policy.limits, self._policy.guard
        frame, message = limits.max_frame_bytes, limits.max_message_bytes
        if guard is not None:
            self._session = guard.connection_session(self._handshake.headers.get(b"authorization"))
            if not self._session.may_call:
                frame = message = min(message, _MAX_UNAUTHENTICATED_BYTES)
        self._frames = FrameReader(frame, message)
        self._transport.write(self._handshake.answer())
        self._handshake.close()
        self._is_open, self._idle_s, self._first = True, 0.0, b""
        if self._session is not None:
            self._session.join(self)
        if rest and self._is_open:
            self._rest = rest
            self._settle()

    def _become_http(self, login: Application) -> None:
        """Serve a login over HTTP on this connection."""
        policy = HttpPolicy(
            login,
            self._policy.hosts,
            OriginList(()),
            HttpLimits(max_body_bytes=MAX_BYTES),
            PlainHeads(),
            lambda opened: True,
            self._left_http,
            shared=self._policy.shared,
        )
        first, self._rest = self._rest, b""
        self._handshake.close()
        self._http = HttpConnection(policy)
        self._transport.set_protocol(self._http)
        self._http.connection_made(self._transport)
        self._http.data_received(first)

    def _left_http(self, closed: HttpConnection) -> None:
        self._http = None  # this assignment breaks a reference cycle with the HTTP connection
        self._policy.closed(self)

    def _refuse(self, response: Response) -> None:
        self._is_open, self._is_closed = False, True
        self._handshake.close()
        self._transport.write(response_head(response, b"", False, False) + b"".join(response.body))
        self._transport.close()

    # --- messages --------------------------------------------------------------------------------

    def work(self) -> None:
        """Parse the input for one time slice."""
        self._is_scheduled = False
        if self._handshake_input:
            self._continue_handshake()
            return
        self._parse()
        if self._is_long and not self._rest:
            self._scheduler.spend(_READ_COST_S)
        self._settle()

    def _parse(self) -> None:
        data, position = self._rest, 0
        if not data or self._is_closed:
            return
        begun = perf_counter()
        while position < len(data) and self._may_ask:
            position, events, controls, fault = self._frames.read(data, position, _FRAMES_PER_CHECK)
            self._controls += controls
            for opcode, payload in events:
                self._on_event(opcode, payload)
            if fault is not None:
                self._end_with(fault)
            elif self._controls > _MAX_CONTROLS:
                self._end_with(CloseCode.POLICY, "Too many control frames")
            if self._has_ended() or perf_counter() - begun > self._scheduler.slice_s:
                break
        self._rest = b"" if self._has_ended() else data[position:]
        self._scheduler.end(begun, self._share)

    def _has_ended(self) -> bool:
        return self._is_closed

    def _on_event(self, opcode: int, payload: bytes) -> None:
        if self._is_closed:
            return
        if opcode == _PINGED:
            self._transport.write(pong(payload))
        elif opcode == _CLOSE:
            self._transport.write(b"\x88%c" % len(payload) + payload)
            self._is_open, self._is_closed = False, True
            self._transport.close()
        else:
            self._on_message(payload)

    def _on_message(self, message: bytes) -> None:
        self._idle_s = 0.0
        handle = self._policy.message_handler.handle if self._session is None else self._session.handle
        reply = handle(message, self)
        if not isinstance(reply, PendingReply):
            self._send(reply)
            return

        def receive(complete: Complete) -> None:
            self._requests.pop(reply, None)
            self._send(complete)
            self._settle()

        reply.deliver = receive
        reply.memory_changed = self._report_memory
        self._requests[reply] = len(message) * _WEIGHT_OF_A_BYTE

    def _send(self, reply: Complete) -> None:
        if not self._is_open:
            return
        if self._pump is not None:
            # queue the reply, because the fragments of two messages must not interleave
            self._behind.append(reply)
            self._behind_bytes += _size_of(reply)
            return
        if isinstance(reply, StreamedAnswer):
            self._pump = self._pump_for(reply)
            return
        parts = (reply,) if isinstance(reply, bytes) else reply.parts
        size = sum(map(len, parts))
        if not size:
            return
        if not self._is_encrypted:
            self._transport.writelines((text_head(size), *parts))
        elif size <= PORTION_BYTES:
            self._transport.write(b"".join((text_head(size), *parts)))
        else:
            # send a large message in fragments, so that control frames can be sent between the fragments
            self._pump = self._pump_for(BareAnswer(EncryptedReplyPieces(parts, self._scheduler)))

    def _pump_for(self, answer: PieceStream) -> AnswerWriter:
        return AnswerWriter(self._transport, answer, fragments(), self._streamed, self._is_paused)

    def _streamed(self) -> None:
        """Send the messages queued behind a streamed answer."""
        self._pump = None
        while self._behind and self._pump is None:
            reply = self._behind.popleft()
            self._behind_bytes -= _size_of(reply)
            self._send(reply)

    def _end_stream(self) -> None:
        if self._pump is not None:
            self._pump.abandon()
            self._pump = None

    # --- flow control -------------------------------------------------------------------------------

    @property
    def _may_ask(self) -> bool:
        """Whether the client may send more requests now."""
        return not self._is_paused and len(self._requests) < _MAX_OPEN_REQUESTS and self._weight < _MAX_OPEN_BYTES

    @property
    def _weight(self) -> int:
        """Return the memory that open requests hold, in bytes."""
        return sum(pending.weight or size for pending, size in self._requests.items())

    @property
    def _unsent_bytes(self) -> int:
        """Return the unsent bytes of a streamed answer and of the messages queued behind it."""
        return self._behind_bytes + (0 if self._pump is None else self._pump.weight)

    @property
    def _is_long(self) -> bool:
        """Return whether a long message is incomplete. Reads of such a message wait for time slices."""
        return self._is_open and self._frames.held_bytes > _LONG_MESSAGE_BYTES

    def _schedule(self) -> None:
        """Wait for a time slice, to parse input or to read more."""
        self._is_scheduled = True
        self._scheduler.wait(self, self._share.rank(len(self._rest) or self._frames.held_bytes))

    def _settle(self) -> None:
        if self._is_closed or self._transport.is_closing():
            return
        may_ask = self._may_ask
        if self._rest and may_ask and not self._is_scheduled:
            self._schedule()
        self._set_reading(may_ask and not self._rest and not self._is_scheduled)
        self._report_memory()

    def _set_reading(self, is_reading: bool) -> None:
        if is_reading != self._is_reading and not self._transport.is_closing():
            self._is_reading = is_reading
            if is_reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _report_memory(self) -> None:
        """Report to the memory budget how much memory this connection holds."""
        size = len(self._rest) + self._weight
        size += self._frames.held_bytes if self._is_open else len(self._handshake_input) + self._handshake.held_bytes
        if self._is_paused:
            size += self._transport.get_write_buffer_size()
        size += self._unsent_bytes
        is_trusted = self._session is None or self._session.is_trusted
        self._policy.shared.budget.report_memory(self, size, is_trusted)


def _size_of(reply: Complete) -> int:
    if isinstance(reply, StreamedAnswer):
        return 0
    return len(reply) if isinstance(reply, bytes) else sum(map(len, reply.parts))
