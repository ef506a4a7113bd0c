"""One WebSocket client: the same answers behind another framing, plus a way to talk back (json-rpc.md 1.9).

    socket -> Handshake -> Turns -> FrameReader -> Conversations -> text frames, in completion order

A connection is the `Caller` of its requests: subscriptions send through `notify`. Frames are looked at for a limited
time in each turn of the loop; what is left over waits, and nothing more is read meanwhile. In a crowd also a long
message is read on only when its turn has come: pieces of thousands of them are more than one turn can read.

Two things protect the node from a client that does not read: while its write buffer is full nothing more is read from
it, so it cannot ask for more; and when notifications pile up beyond a limit, the connection is cut off.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from time import perf_counter
from typing import Final, cast

from ophion.native.messages import FrameReader
from ophion.rpc.transport.access import OriginList
from ophion.rpc.transport.connection_slots import BUSY, NEVER_ASKED
from ophion.rpc.transport.graceful_close import GracefulClose
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.messages import TEXT, Response, response_head
from ophion.rpc.transport.http.policy import Application, HttpLimits, HttpPolicy
from ophion.rpc.transport.remote_end import address_of, is_encrypted
from ophion.rpc.transport.replies import Complete, Pending
from ophion.rpc.transport.slow_reader import SlowReaderCheck
from ophion.rpc.transport.streaming import Bare, Flow, Pump, StreamedAnswer, fragments
from ophion.rpc.transport.websocket.framing import PING, Closing, closing, pong, text_head
from ophion.rpc.transport.websocket.handshake import MAX_BYTES, Handshake
from ophion.rpc.transport.websocket.policy import ConnectionSession, WebSocketPolicy
from ophion.runtime.chunked_body import PORTION_BYTES, Portions
from ophion.runtime.fair_scheduler import Share

logger = logging.getLogger(__name__)

_PING_AFTER_S: Final = 30.0
_MAX_OPEN_REQUESTS: Final = 128
_MAX_OPEN_BYTES: Final = 256 * 1024
"""Messages at work on one connection; beyond them the next one waits."""
_LINGER_S: Final = 8.0
"""How long a client that broke a rule may take to notice."""
_MAX_CONTROLS: Final = 512
"""Pings and pongs between two ticks."""
_FRAMES: Final = 32
"""How many frames are looked at before the time is."""
_LONG_BYTES: Final = 16 * 1024
_READ_S: Final = 75e-6
"""What it costs to read the next piece of a long message, when the loop looks after its sockets and nobody measures."""
_UNSENT_BYTES: Final = 8 * 1024
_HEARD_OF_STRANGERS: Final = 64 * 1024
"""The longest message of somebody who may ask nothing."""
_WEIGHT_OF_A_BYTE: Final = 8
_CLOSE, _PINGED = 0x8, 0x9
_LOGIN: Final = b"POST /login"
_NO_PLACE: Final = Response(503, (b"Too many connections",), TEXT)
_NO_LOGIN: Final = Response(400, reason=b"Authentication not enabled")


class WebSocketConnection(asyncio.Protocol):
    """One client, from handshake to close."""

    def __init__(self, policy: WebSocketPolicy) -> None:
        self._policy = policy
        self._turns = policy.shared.turns
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._handshake = Handshake()
        self._frames: FrameReader = cast(FrameReader, None)
        self._first = b""
        """The beginning of the handshake, as long as it may be a login."""
        self._hello = b""
        """What has arrived of a handshake and waits for its turn."""
        self._rest = b""
        """What has arrived and waits for its turn."""
        self._is_waiting = False
        self._share = Share()
        self._is_encrypted = False
        self._is_open = False
        self._is_closed = False
        self._is_paused = False
        self._is_reading = True
        self._controls = 0
        self._requests: dict[Pending[Complete], int] = {}
        self._pump: Pump | None = None
        self._behind: deque[Complete] = deque()
        self._behind_bytes = 0
        """What came while a streamed answer is under way; thousands of notifications, and each asks how much it is."""
        self._silent_s = 0.0
        self._idle_s = 0.0
        self._unread_s = 0.0
        self._taking = SlowReaderCheck()
        self._session: ConnectionSession | None = None
        self._http: HttpConnection | None = None
        self._lingering: GracefulClose | None = None

    # --- called by the loop ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._is_encrypted = is_encrypted(transport)
        self._transport.set_write_buffer_limits(_UNSENT_BYTES)
        if not self._policy.opened(self):
            self._refuse(_NO_PLACE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open, self._is_closed = False, True
        self._handshake.close()
        self._rest = self._hello = b""
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
            if self._lingering is not None:
                self._lingering.receive(len(data))
            return
        self._silent_s = 0.0
        if not self._is_open:
            self._hello += data
            if not self._turns.is_over:
                self.work()
            elif not self._is_waiting:
                # a crowd that comes at once must not keep the loop busy with handshakes alone
                self._is_waiting = True
                self._set_reading(False)
                self._turns.wait(self, self._share.rank(len(data)))
                self._weigh()
        elif self._rest or self._turns.is_over:
            self._rest += data
            self._settle()
        else:
            self._rest = data
            self._work_off()
            if self._is_long and self._turns.is_crowded:
                self._wait()
            self._settle()

    def pause_writing(self) -> None:
        self._is_paused, self._unread_s = True, 0.0
        self._taking.begin(self._transport.get_write_buffer_size())
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
        """Send a message the client did not ask for just now; one that lets them pile up is cut off."""
        if not self._is_open:
            return
        unread = self._transport.get_write_buffer_size() + self._unsent_bytes
        self._idle_s = 0.0
        if unread > self._policy.room():
            logger.warning("websocket client cut off: it does not read its notifications")
            self._is_open, self._is_closed = False, True  # once, and not again for each of its subscriptions
            self._transport.abort()
            return
        self._send(message)
        if self._is_paused:
            self._weigh()

    @property
    def client(self) -> str:
        """Who asks: the name of a token, or the address of a machine."""
        name = None if self._session is None else self._session.client
        return name or address_of(self._transport)

    def tick(self, seconds: float) -> None:
        """Some time has passed: see whether the client is still there."""
        if self._http is not None:
            self._http.tick(seconds)
            return
        limits = self._policy.limits
        before, self._silent_s = self._silent_s, self._silent_s + seconds
        self._idle_s += seconds
        self._unread_s += seconds
        self._controls = 0
        if self._is_paused and self._taking.goes_on(self._transport.get_write_buffer_size()):
            before = self._unread_s = self._silent_s = 0.0  # answers to pings wait behind it
        if self._is_paused and self._unread_s > limits.write_timeout_s:
            logger.warning("websocket client cut off: it has read nothing for %.0f s", self._unread_s)
            self._transport.abort()
        elif self._is_closed:
            if self._silent_s > _LINGER_S:
                self._transport.abort()
        elif not self._is_open and self._idle_s > limits.handshake_timeout_s:
            self._refuse(Response(408))
        elif self._silent_s > limits.silence_timeout_s:
            self._transport.abort()
        elif self._is_open and int(before / _PING_AFTER_S) < int(self._silent_s / _PING_AFTER_S):
            self._transport.write(PING)

    def idleness(self) -> float:
        """Seconds without requests and notifications; `ConnectionSlots` evicts the idlest connection."""
        if self._http is not None:
            return self._http.idleness()
        if not self._is_open:
            return NEVER_ASKED + self._idle_s
        return BUSY if self._requests and not self._is_paused else self._idle_s

    def give_way(self) -> None:
        """Somebody else takes the place of this connection, which has nothing to do."""
        if self._transport.get_write_buffer_size() or not self._is_open:
            self._transport.abort()  # nobody would look after one that waits for a client which does not read
        else:
            self.close(Closing.TRY_AGAIN_LATER)

    def cut_off(self) -> None:
        """All clients together hold too much: this one lets go of what it has (`Budget`)."""
        self._rest, self._frames = b"", FrameReader(0, 0)
        self.give_way()

    def session_ended(self) -> None:
        """Neither answers nor notifications for somebody whose token is not good any more."""
        self.close(Closing.POLICY, "Token expired")

    def close(self, code: int = Closing.GOING_AWAY, reason: str = "") -> None:
        """End the connection with a reason the client can see."""
        if self._is_open:
            self._transport.write(closing(code, reason))
        self._is_open, self._is_closed = False, True
        self._rest = b""
        self._end_stream()
        self._transport.close()

    def _end_with(self, code: int, reason: str = "") -> None:
        """The client has broken a rule: it is told so, and what it still sends is thrown away."""
        if self._is_open:
            self._transport.write(closing(code, reason))
            self._is_open, self._is_closed, self._silent_s = False, True, 0.0
            self._end_stream()
            self._lingering = GracefulClose(self._transport, self._turns)

    # --- the handshake ---------------------------------------------------------------------------

    def _shake_hands(self) -> None:
        hello, self._hello = self._hello, b""
        if self._is_closed:
            return
        begun = perf_counter()
        self._set_reading(True)
        self._greet(hello)
        self._turns.end(begun, self._share)
        if not (self._is_open or self._has_ended()) and self._http is None:
            self._weigh()

    def _greet(self, data: bytes) -> None:
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
            if not self._session.is_heard:
                frame = message = min(message, _HEARD_OF_STRANGERS)
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
        """This client wants to log in before it comes back with a token: from here on it speaks HTTP."""
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
        self._http = None  # which knows this object, and would keep both
        self._policy.closed(self)

    def _refuse(self, response: Response) -> None:
        self._is_open, self._is_closed = False, True
        self._handshake.close()
        self._transport.write(response_head(response, b"", False, False) + b"".join(response.body))
        self._transport.close()

    # --- messages --------------------------------------------------------------------------------

    def work(self) -> None:
        """Go on with what has arrived, for a while (`Turns`)."""
        self._is_waiting = False
        if self._hello:
            self._shake_hands()
            return
        self._work_off()
        if self._is_long and not self._rest:
            self._turns.spend(_READ_S)
        self._settle()

    def _work_off(self) -> None:
        data, position = self._rest, 0
        if not data or self._is_closed:
            return
        begun = perf_counter()
        while position < len(data) and self._has_room:
            position, events, controls, fault = self._frames.read(data, position, _FRAMES)
            self._controls += controls
            for opcode, payload in events:
                self._on_event(opcode, payload)
            if fault is not None:
                self._end_with(fault)
            elif self._controls > _MAX_CONTROLS:
                self._end_with(Closing.POLICY, "Too many control frames")
            if self._has_ended() or perf_counter() - begun > self._turns.slice_s:
                break
        self._rest = b"" if self._has_ended() else data[position:]
        self._turns.end(begun, self._share)

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
        handle = self._policy.conversations.handle if self._session is None else self._session.handle
        reply = handle(message, self)
        if not isinstance(reply, Pending):
            self._send(reply)
            return

        def receive(complete: Complete) -> None:
            self._requests.pop(reply, None)
            self._send(complete)
            self._settle()

        reply.deliver = receive
        reply.weighed = self._weigh
        self._requests[reply] = len(message) * _WEIGHT_OF_A_BYTE

    def _send(self, reply: Complete) -> None:
        if not self._is_open:
            return
        if self._pump is not None:
            # the fragments of one message must not be interrupted by another
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
            # in fragments, so that what controls the connection may come in between
            self._pump = self._pump_for(Bare(Portions(parts, self._turns)))

    def _pump_for(self, answer: Flow) -> Pump:
        return Pump(self._transport, answer, fragments(), self._streamed, self._is_paused)

    def _streamed(self) -> None:
        """A streamed answer has been sent: now what came in between."""
        self._pump = None
        while self._behind and self._pump is None:
            reply = self._behind.popleft()
            self._behind_bytes -= _size_of(reply)
            self._send(reply)

    def _end_stream(self) -> None:
        if self._pump is not None:
            self._pump.abandon()
            self._pump = None

    # --- what may happen next --------------------------------------------------------------------

    @property
    def _has_room(self) -> bool:
        """Whether the client may ask for more at this moment."""
        return not self._is_paused and len(self._requests) < _MAX_OPEN_REQUESTS and self._weight < _MAX_OPEN_BYTES

    @property
    def _weight(self) -> int:
        """Bytes that are kept for messages at work."""
        return sum(pending.weight or size for pending, size in self._requests.items())

    @property
    def _unsent_bytes(self) -> int:
        """Bytes that are kept of an answer under way, and of what came meanwhile."""
        return self._behind_bytes + (0 if self._pump is None else self._pump.weight)

    @property
    def _is_long(self) -> bool:
        """Whether this is the midst of a long message: of those who send one, some are read from in each turn."""
        return self._is_open and self._frames.held_bytes > _LONG_BYTES

    def _wait(self) -> None:
        """For a turn: to go on with what is here, or else to read on."""
        self._is_waiting = True
        self._turns.wait(self, self._share.rank(len(self._rest) or self._frames.held_bytes))

    def _settle(self) -> None:
        if self._is_closed or self._transport.is_closing():
            return
        has_room = self._has_room
        if self._rest and has_room and not self._is_waiting:
            self._wait()
        self._set_reading(has_room and not self._rest and not self._is_waiting)
        self._weigh()

    def _set_reading(self, wanted: bool) -> None:
        if wanted != self._is_reading and not self._transport.is_closing():
            self._is_reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _weigh(self) -> None:
        """Note what this connection makes the node hold."""
        size = len(self._rest) + self._weight
        size += self._frames.held_bytes if self._is_open else len(self._hello) + self._handshake.held_bytes
        if self._is_paused:
            size += self._transport.get_write_buffer_size()
        size += self._unsent_bytes
        is_trusted = self._session is None or self._session.is_trusted
        self._policy.shared.budget.weigh(self, size, is_trusted)


def _size_of(reply: Complete) -> int:
    if isinstance(reply, StreamedAnswer):
        return 0
    return len(reply) if isinstance(reply, bytes) else sum(map(len, reply.parts))
