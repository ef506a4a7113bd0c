"""Connection pool of one service of a node, with a queue of requests.

A request uses the connection that was used last, or a new connection. Connections and queue are bounded. A connection
carries one request at a time, so no request waits behind a slow one. The gateway never sends a request twice, because
only the client knows whether that is safe.

Fast path: a plain response goes directly to the waiting client (`WaitingClient`). All other responses take the slow
path through `PendingReply`. If the client has sent more bytes or disconnected in the meantime, its response takes the
slow path too. tests/unit/gateway/test_fast_path.py compares both.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from typing import Any, Final, Protocol, cast

from ophion.gateway.backends import ServiceAddress, ServiceKind
from ophion.gateway.error_responses import IncompleteResponse, failure
from ophion.gateway.upstream_response import UpstreamResponseReader
from ophion.rpc.transport.host_allowlist import in_brackets
from ophion.rpc.transport.http.messages import Response
from ophion.rpc.transport.replies import PendingReply
from ophion.rpc.transport.streaming import StreamedAnswer

logger = logging.getLogger(__name__)

MAX_UPSTREAM_CONNECTIONS: Final = 2048
MAX_WAITING: Final = 4096
CONNECT_S: Final = 5.0
_RECEIVED_BYTES: Final = 64 * 1024
_MAX_IDLE_S: Final = 60.0
"""Seconds after which the gateway closes idle connections. The node would close them after ten minutes."""
_KEPT_IDLE: Final = 64
"""Number of idle connections that may stay open for `_MAX_IDLE_S` seconds."""
_SPARE_S: Final = 2.0
"""Seconds after which the gateway closes idle connections above `_KEPT_IDLE`. After a burst of requests, thousands of
idle connections would use memory of the gateway and of the node.
"""
ANSWER_S: Final = 120.0
"""Seconds without a response after which a request to a node times out. The node's own timeouts are far shorter."""
_PLAIN_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
"""First bytes of almost every response of an Ophion node."""


def limit_read_size(transport: asyncio.BaseTransport) -> None:
    """Limit the number of bytes per read. Further bytes wait in the kernel's socket buffer."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)


class WaitingClient(Protocol):
    """A client that waits for a plain response."""

    def relayed(self, answer: bytes) -> None:
        """Receive the head and body of the response."""

    def queue_relay(self) -> None:
        """Handle a response that is not plain. The client then waits for the `PendingReply` of the connection."""


class Upstream:
    """One service of one node, or a tool such as Grafana."""

    def __init__(
        self, kind: ServiceKind | None, name: str, place: ServiceAddress, host_name: str | None = None
    ) -> None:
        self.kind = kind
        self.name = name
        """Name of the node or tool, for error messages."""
        self.place = place
        self.host = (in_brackets(host_name) if host_name else f"{in_brackets(place.host)}:{place.port}").encode()
        """Value of the `Host` header."""
        self.idle: list[UpstreamConnection] = []
        """Idle connections, with the most recently used connection last."""
        self._all: set[UpstreamConnection] = set()
        self._waiting: deque[_Waiting] = deque()
        self._connecting: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def ask(self, message: bytes) -> PendingReply[Any] | Response:
        """Send a request, or queue it until a connection is free. The result is a `Response`, a `StreamedAnswer`, or
        `bytes` of a plain JSON body.
        """
        if self.idle:
            one = self.idle.pop()
            pending: PendingReply[Any] = PendingReply(one.give_up)
            pending.weight = len(message)
            one.send(message, pending)
            return pending
        waiting = _Waiting(message)
        if len(self._all) + len(self._connecting) < MAX_UPSTREAM_CONNECTIONS:
            self._connect(waiting)
        elif len(self._waiting) < MAX_WAITING:
            self._waiting.append(waiting)
        else:
            return failure(self.kind, 503, f"Too many requests wait for {self.name}.")
        return waiting.pending

    @property
    def has_queue(self) -> bool:
        """Whether requests are queued for a connection."""
        return bool(self._waiting)

    def tick(self, seconds: float) -> None:
        """Close idle and timed-out connections."""
        for one in tuple(self._all):
            one.quiet_s += seconds
            if one.is_asked and one.quiet_s > ANSWER_S and not one.is_held_back:
                one.end(failure(self.kind, 504, f"{self.name} has not answered for {ANSWER_S:.0f} s."))
        spare = max(len(self.idle) - _KEPT_IDLE, 0)
        while self.idle and self.idle[0].quiet_s > (_SPARE_S if spare > 0 else _MAX_IDLE_S):
            self.idle.pop(0).end(None)
            spare -= 1

    def close(self) -> None:
        """Close all connections and drop the queue."""
        self._is_closed = True
        for task in tuple(self._connecting):
            task.cancel()
        for one in tuple(self._all):
            one.end(None)
        for waiting in self._waiting:
            waiting.give_up()
        self._waiting.clear()

    def problem(self, error: OSError) -> str:
        """Return the reason why the node cannot be reached, in one line."""
        reason = "it does not answer" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        return f"{self.name} is down: cannot connect to {self.place.host}:{self.place.port} ({reason})."

    def _connect(self, waiting: _Waiting) -> None:
        task = asyncio.get_running_loop().create_task(self._connected(waiting), name=f"connect to {self.name}")
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connected(self, waiting: _Waiting) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S):
                _, one = await loop.create_connection(
                    lambda: UpstreamConnection(self), self.place.host, self.place.port
                )
        except OSError as error:
            answer = failure(self.kind, 502, self.problem(error))
            waiting.pending.resolve(answer)
            self._refuse_all(answer)
            return
        self._all.add(one)
        if waiting.is_given_up:
            self.free(one)
        else:
            waiting.go_over(one)

    def _refuse_all(self, answer: Response) -> None:
        """Fail all queued requests if no connection is left to serve them."""
        while self._waiting and not self._all:
            self._waiting.popleft().pending.resolve(answer)

    def free(self, one: UpstreamConnection) -> None:
        """Reuse a connection whose response is complete: for the next queued request, or as an idle connection."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.is_given_up:
                waiting.go_over(one)
                return
        self.idle.append(one)

    def lost(self, one: UpstreamConnection) -> None:
        """Remove a closed connection, and open a new connection for the next queued request."""
        self._all.discard(one)
        if one in self.idle:
            self.idle.remove(one)
        while self._waiting and not self._is_closed:
            waiting = self._waiting.popleft()
            if not waiting.is_given_up:
                self._connect(waiting)
                return


class _Waiting:
    """A request that waits for a connection to the service."""

    __slots__ = ("_message", "_over", "is_given_up", "pending")

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._over: UpstreamConnection | None = None
        self.is_given_up = False
        self.pending: PendingReply[Any] = PendingReply(self.give_up)
        self.pending.weight = len(message)

    def go_over(self, one: UpstreamConnection) -> None:
        message, self._message = self._message, b""
        self._over = one
        one.send(message, self.pending)

    def give_up(self) -> None:
        """Drop the request after the client has disconnected."""
        self.is_given_up, self._message = True, b""
        if self._over is not None:
            self._over.give_up()


class UpstreamConnection(asyncio.Protocol):
    """One connection to a service, which carries one request at a time."""

    __slots__ = (
        "_last_head",
        "_last_size",
        "_pending",
        "_reader",
        "_relay",
        "_transport",
        "_upstream",
        "is_held_back",
        "is_lost",
        "quiet_s",
    )

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._pending: PendingReply[Any] | None = None
        self._relay: WaitingClient | None = None
        self._reader: UpstreamResponseReader | None = None
        self._last_head = b""
        self._last_size = -1
        self.is_lost = False
        self.is_held_back = False
        """Whether reading is paused because the client does not read the response."""
        self.quiet_s = 0.0

    @property
    def is_asked(self) -> bool:
        """Whether a request was sent and its response is missing or incomplete."""
        return self._pending is not None or self._relay is not None or self._reader is not None

    def send(self, message: bytes, pending: PendingReply[Any]) -> None:
        """Send a request. `pending` receives the response."""
        self._pending = pending
        self.quiet_s = 0.0
        self._transport.write(message)

    def relay(self, message: bytes, relay: WaitingClient) -> None:
        """Send a request on the fast path. `relay` receives a plain response as raw bytes."""
        self._relay = relay
        self.quiet_s = 0.0
        self._transport.write(message)

    def as_pending(self) -> PendingReply[Any]:
        """Hand the request to the slow path. Returns the pending reply that the slow path resolves."""
        self._relay = None
        pending = self._pending = PendingReply(self.give_up)
        return pending

    def give_up(self) -> None:
        """Close the connection after the client has disconnected, because an incomplete response prevents its reuse."""
        self._pending = None
        self.end(None)

    def end(self, answer: Response | None) -> None:
        """Close the connection, and answer the waiting request with `answer`."""
        self._finish(answer)
        self._transport.abort()

    # --- called by the event loop ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        limit_read_size(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if self._reader is None or not self._reader.end():
            name = self._upstream.name
            self._finish(failure(self._upstream.kind, 502, f"{name} has ended the connection instead of answering."))
        self._reader = None
        self._upstream.lost(self)

    def data_received(self, data: bytes) -> None:
        relay = self._relay
        if relay is not None:
            if self._is_plain(data):
                self._relay = None
                if self._upstream.has_queue:
                    self._upstream.free(self)
                else:
                    self._upstream.idle.append(self)
                relay.relayed(data)
                return
            relay.queue_relay()
        self.quiet_s = 0.0
        if self._reader is None:
            pending = self._pending
            if pending is None:
                self.end(None)  # the node sent data without a request, so close the connection
                return
            if self._is_plain(data):
                self._pending = None
                self._upstream.free(self)
                pending.resolve(data[len(self._last_head) :])
                return
            self._reader = UpstreamResponseReader(self, self._deliver, self.give_up)
        self._read(self._reader, data)

    def _is_plain(self, data: bytes) -> bool:
        """Whether the bytes are exactly one complete JSON response. Responses of equal size share a cached head."""
        if len(data) == self._last_size and data.startswith(self._last_head):
            return True
        if not data.startswith(_PLAIN_HEAD):
            return False
        end = data.find(b"\r\n\r\n", len(_PLAIN_HEAD)) + 4
        if end < 4 or data[len(_PLAIN_HEAD) : end - 4] != b"%d" % (len(data) - end):
            return False
        self._last_head, self._last_size = data[:end], len(data)
        return True

    def _read(self, reader: UpstreamResponseReader, data: bytes) -> None:
        if not reader.feed(data):
            self.end(failure(self._upstream.kind, 502, f"{self._upstream.name} answers, but not in HTTP."))
        elif reader.is_whole and not self.is_lost:
            self._reader = None
            reader.close()
            if reader.keeps_alive:
                self._upstream.free(self)
            else:
                self._transport.abort()

    # --- called by the response ------------------------------------------------------------------

    def pause_reading(self) -> None:
        self.is_held_back = True
        if not self.is_lost:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self.is_held_back, self.quiet_s = False, 0.0
        if not self.is_lost:
            self._transport.resume_reading()

    def _deliver(self, answer: Response | StreamedAnswer) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.resolve(answer)

    def _finish(self, answer: Response | None) -> None:
        if self._relay is not None:
            self._relay.queue_relay()
        reader, pending = self._reader, self._pending
        self._pending = None
        if reader is not None:
            reader.close(IncompleteResponse(f"{self._upstream.name} disconnected before the end of its response"))
        if pending is not None and answer is not None:
            pending.resolve(answer)
