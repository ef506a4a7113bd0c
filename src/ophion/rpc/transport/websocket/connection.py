"""One WebSocket client: the same answers behind another framing, plus a way to talk back (json-rpc.md 1.9).

    socket -> WebSocketConnection -> wsproto (handshake, frames) -> Conversations -> text frames, in completion order

A connection is the `Caller` of its requests: subscriptions send through `notify`. Two things protect the node from a
client that does not read: while its write buffer is full nothing more is read from it, so it cannot ask for more; and
when notifications pile up beyond a limit, the connection is cut off.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, cast

from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    RejectConnection,
    RejectData,
    TextMessage,
)
from wsproto.events import Request as Handshake
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import RemoteProtocolError

from ophion.rpc.transport.access import OriginList
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.policy import Application, HttpLimits, HttpPolicy, PlainHeads
from ophion.rpc.transport.http.wire import TEXT, Response, response_head
from ophion.rpc.transport.places import BUSY, NEVER_ASKED
from ophion.rpc.transport.replies import Complete, Pending
from ophion.rpc.transport.streaming import Pump, StreamedAnswer, fragments
from ophion.rpc.transport.websocket.policy import ConnectionSession, WebSocketPolicy

logger = logging.getLogger(__name__)

_PING_AFTER_S: Final = 30.0
_MAX_HANDSHAKE_BYTES: Final = 64 * 1024
_MAX_OPEN_REQUESTS: Final = 128
_LOGIN: Final = b"POST /login"
_NO_PLACE: Final = Response(503, (b"Too many connections",), TEXT)
_NOT_HTTP: Final = Response(400, (b"Websocket endpoint can't handle HTTP requests",), TEXT)
_NO_LOGIN: Final = Response(400, reason=b"Authentication not enabled")


class WebSocketConnection(asyncio.Protocol):
    """One client, from handshake to close."""

    def __init__(self, policy: WebSocketPolicy) -> None:
        self._policy = policy
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._protocol = WSConnection(ConnectionType.SERVER)
        self._first = b""
        self._is_open = False
        self._is_closed = False
        self._is_paused = False
        self._message: list[str] = []
        self._message_bytes = 0
        self._frame_bytes = 0
        self._requests: set[Pending[Complete]] = set()
        self._pump: Pump | None = None
        self._behind: deque[Complete] = deque()
        self._silent_s = 0.0
        self._idle_s = 0.0
        self._unread_s = 0.0
        self._session: ConnectionSession | None = None
        self._http: HttpConnection | None = None

    # --- called by the loop ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self._policy.opened(self):
            self._refuse(_NO_PLACE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open, self._is_closed = False, True
        if self._session is not None:
            self._session.leave(self)
        for pending in tuple(self._requests):
            pending.abandon()
        self._requests.clear()
        if self._pump is not None:
            self._pump.abandon()
            self._pump = None
        self._behind.clear()
        self._policy.behind.discard(self)
        self._policy.closed(self)

    def data_received(self, data: bytes) -> None:
        if self._is_closed:
            return
        self._silent_s = 0.0
        try:
            if not self._is_open:
                self._first += data[: _MAX_HANDSHAKE_BYTES + 1]
                if len(self._first) > _MAX_HANDSHAKE_BYTES:
                    self._refuse(Response(431))
                    return
                if self._policy.login is not None and _LOGIN.startswith(self._first[: len(_LOGIN)]):
                    if len(self._first) >= len(_LOGIN):
                        self._become_http(self._policy.login)
                    return
            self._protocol.receive_data(data)
            for event in self._protocol.events():
                self._on_event(event)
        except RemoteProtocolError:
            self._refuse(_NO_LOGIN if self._first.startswith(_LOGIN) else _NOT_HTTP)

    def pause_writing(self) -> None:
        self._is_paused, self._unread_s = True, 0.0
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
        unread = self._transport.get_write_buffer_size() + sum(len(one) for one in self._behind if type(one) is bytes)
        self._idle_s = 0.0
        if unread > self._policy.room():
            logger.warning("websocket client cut off: it does not read its notifications")
            self._transport.abort()
            return
        self._send(message)

    def tick(self, seconds: float) -> None:
        """Some time has passed: see whether the client is still there."""
        if self._http is not None:
            self._http.tick(seconds)
            return
        limits = self._policy.limits
        before, self._silent_s = self._silent_s, self._silent_s + seconds
        self._idle_s += seconds
        self._unread_s += seconds
        if self._is_paused and self._unread_s > limits.write_timeout_s:
            logger.warning("websocket client cut off: it has read nothing for %.0f s", self._unread_s)
            self._transport.abort()
        elif not self._is_open and self._idle_s > limits.handshake_timeout_s:
            self._refuse(Response(408))
        elif self._silent_s > limits.silence_timeout_s:
            self._transport.abort()
        elif self._is_open and int(before / _PING_AFTER_S) < int(self._silent_s / _PING_AFTER_S):
            self._transport.write(self._protocol.send(Ping()))

    def idleness(self) -> float:
        """Seconds without requests and notifications, for whoever needs the place of this connection (`Places`)."""
        if self._http is not None:
            return self._http.idleness()
        if not self._is_open:
            return NEVER_ASKED + self._idle_s
        return BUSY if self._requests and not self._is_paused else self._idle_s

    def give_way(self) -> None:
        """Somebody else takes the place of this connection, which has nothing to do."""
        if self._is_paused or not self._is_open:
            self._transport.abort()
        else:
            self.close(CloseReason.TRY_AGAIN_LATER)

    def session_ended(self) -> None:
        """Neither answers nor notifications for somebody whose token is not good any more."""
        self.close(CloseReason.POLICY_VIOLATION, "Token expired")

    def close(self, code: CloseReason = CloseReason.GOING_AWAY, reason: str | None = None) -> None:
        """End the connection with a reason the client can see."""
        if self._is_open and self._protocol.state is ConnectionState.OPEN:
            self._transport.write(self._protocol.send(CloseConnection(code, reason)))
        self._is_open, self._is_closed = False, True
        if self._pump is not None:
            self._pump.abandon()
            self._pump = None
        self._transport.close()

    # --- events ----------------------------------------------------------------------------------

    def _on_event(self, event: object) -> None:
        if self._is_closed:
            return
        if isinstance(event, TextMessage):
            self._on_data(event.data, event.frame_finished, event.message_finished)
        elif isinstance(event, BytesMessage):
            self._on_data(bytes(event.data).decode("utf-8", "replace"), event.frame_finished, event.message_finished)
        elif isinstance(event, Handshake):
            self._on_handshake(event)
        elif isinstance(event, Ping):
            self._transport.write(self._protocol.send(event.response()))
        elif isinstance(event, CloseConnection):
            if self._protocol.state in (ConnectionState.REMOTE_CLOSING, ConnectionState.OPEN):
                self._transport.write(self._protocol.send(event.response()))
            self._is_open, self._is_closed = False, True
            self._transport.close()

    def _on_handshake(self, handshake: Handshake) -> None:
        if not self._policy.hosts.allows(handshake.host.encode("latin-1")):
            body = b'{"message":"Host not authorized."}'
            headers = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body))]
            rejection = RejectConnection(status_code=403, headers=headers, has_body=True)
            self._transport.write(self._protocol.send(rejection) + self._protocol.send(RejectData(data=body)))
            self._is_closed = True
            self._transport.close()
            return
        if self._policy.guard is not None:
            header = next((value for name, value in handshake.extra_headers if name.lower() == b"authorization"), None)
            self._session = self._policy.guard.connection_session(header)
        # Some libraries name this sub-protocol by mistake and give up when it is not confirmed.
        subprotocol = "undefined" if "undefined" in handshake.subprotocols else None
        self._transport.write(self._protocol.send(AcceptConnection(subprotocol=subprotocol)))
        self._is_open = True
        self._idle_s = 0.0
        self._first = b""
        if self._session is not None:
            self._session.join(self)

    def _on_data(self, text: str, ends_frame: bool, ends_message: bool) -> None:
        limits = self._policy.limits
        self._frame_bytes += len(text)
        self._message_bytes += len(text)
        if self._frame_bytes > limits.max_frame_bytes or self._message_bytes > limits.max_message_bytes:
            self.close(CloseReason.MESSAGE_TOO_BIG)
            return
        self._message.append(text)
        if ends_frame:
            self._frame_bytes = 0
        if ends_message:
            message, self._message, self._message_bytes = "".join(self._message), [], 0
            self._on_message(message.encode())

    def _on_message(self, message: bytes) -> None:
        self._idle_s = 0.0
        handle = self._policy.conversations.handle if self._session is None else self._session.handle
        reply = handle(message, self)
        if not isinstance(reply, Pending):
            self._send(reply)
            return

        def receive(complete: Complete) -> None:
            self._requests.discard(reply)
            self._send(complete)
            self._settle()

        reply.deliver = receive
        self._requests.add(reply)
        self._settle()

    def _send(self, reply: Complete) -> None:
        if not self._is_open:
            return
        if self._pump is not None:
            # the fragments of one message must not be interrupted by another
            self._behind.append(reply)
            return
        if isinstance(reply, StreamedAnswer):
            self._pump = Pump(self._transport, reply, fragments(), self._streamed)
            return
        parts = (reply,) if isinstance(reply, bytes) else reply.parts
        size = sum(map(len, parts))
        if size:
            self._transport.writelines((text_frame_head(size), *parts))

    def _streamed(self) -> None:
        """A streamed answer has been sent: now what came in between."""
        self._pump = None
        while self._behind and self._pump is None:
            self._send(self._behind.popleft())

    def _settle(self) -> None:
        if self._is_closed or self._transport.is_closing():
            return
        if self._is_paused or len(self._requests) >= _MAX_OPEN_REQUESTS:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _become_http(self, login: Application) -> None:
        """This client wants to log in before it comes back with a token: from here on it speaks HTTP."""
        policy = HttpPolicy(
            login,
            self._policy.hosts,
            OriginList(()),
            HttpLimits(max_body_bytes=_MAX_HANDSHAKE_BYTES),
            PlainHeads(),
            lambda opened: True,
            lambda closed: self._policy.closed(self),
        )
        first, self._first = self._first, b""
        self._http = HttpConnection(policy)
        self._transport.set_protocol(self._http)
        self._http.connection_made(self._transport)
        self._http.data_received(first)

    def _refuse(self, response: Response) -> None:
        self._is_open, self._is_closed = False, True
        self._transport.write(response_head(response, b"", False, False) + b"".join(response.body))
        self._transport.close()


def text_frame_head(size: int) -> bytes:
    """The head of an unfragmented, unmasked text frame: answers are bytes already and need no copy through text."""
    if size < 126:
        return bytes((0x81, size))
    if size < 1 << 16:
        return b"\x81\x7e" + size.to_bytes(2, "big")
    return b"\x81\x7f" + size.to_bytes(8, "big")
