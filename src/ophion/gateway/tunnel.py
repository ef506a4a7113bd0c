"""One WebSocket tunnel: after the handshake, bytes are copied in both directions.

    client <-> Tunnel <-> NodeEnd <-> node

The node itself speaks WebSocket with the client: it checks frames, pings, and closes. The tunnel adds four rules:
- Only a 101 response of the node opens the tunnel. Other responses are forwarded and end the connection.
- Backpressure: while one end does not read, the tunnel does not read from the other end.
- When one end disconnects, the tunnel closes the other end.
- Fairness: bytes are copied in time slices (tunnel_direction.py), and few tunnels open at a time (`TunnelSlots`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from ophion.gateway.error_responses import failure
from ophion.gateway.tunnel_direction import TunnelDirection
from ophion.gateway.upstream import CONNECT_S, Upstream, limit_read_size
from ophion.rpc.transport.connection_slots import BUSY
from ophion.rpc.transport.http.messages import Response, response_head
from ophion.rpc.transport.shared_resources import SharedResources

_MAX_UNSENT_BYTES: Final = 32 * 1024
"""Maximum number of unsent bytes for one end. Above this limit, the tunnel stops reading from the other end."""
_MAX_HEAD_BYTES: Final = 16 * 1024
_MAX_REFUSAL_BYTES: Final = 64 * 1024
_HANDSHAKE_TIMEOUT_S: Final = 10.0
_OPENED: Final = b"HTTP/1.1 101 "
_MAX_OPENING: Final = 32
"""Maximum number of tunnels that open at the same time. Opening a tunnel costs as much as some dozen plain requests."""


class TunnelSlots:
    """Limits how many tunnels open at the same time. Further tunnels wait in a queue."""

    def __init__(self, max_opening: int = _MAX_OPENING) -> None:
        self._max_opening = max_opening
        self._under_way: set[Tunnel] = set()
        self._line: dict[Tunnel, None] = {}

    def begin(self, tunnel: Tunnel) -> None:
        """Open a tunnel now, or queue it."""
        if len(self._under_way) < self._max_opening:
            self._under_way.add(tunnel)
            tunnel.open()
        else:
            self._line[tunnel] = None

    def end(self, tunnel: Tunnel) -> None:
        """Free the slot of a tunnel that is open or has failed, and begin the next waiting tunnel. A second call does
        nothing.
        """
        self._line.pop(tunnel, None)
        if tunnel in self._under_way:
            self._under_way.remove(tunnel)
            if self._line:
                following = next(iter(self._line))
                del self._line[following]
                self.begin(following)


class Tunnel(asyncio.Protocol):
    """The client's end of a tunnel."""

    __slots__ = (
        "_closed",
        "_direction",
        "_early",
        "_far",
        "_hello",
        "_is_over",
        "_is_paused",
        "_opening",
        "_openings",
        "_shared",
        "_transport",
        "_upstream",
        "_write_timeout_s",
        "is_open",
        "quiet_s",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        upstream: Upstream,
        hello: bytes,
        early: bytes,
        closed: Callable[[Tunnel], None],
        shared: SharedResources,
        openings: TunnelSlots,
        write_timeout_s: float,
        is_paused: bool = False,
    ) -> None:
        """Create a tunnel. `hello` is the handshake for the node. `early` are bytes that the client sent after its
        handshake.

        `is_paused` means that the client's send buffer is full.
        """
        self._transport = transport
        self._upstream = upstream
        self._hello = hello
        self._early = early
        self._closed = closed
        self._shared = shared
        self._openings = openings
        self._write_timeout_s = write_timeout_s
        self._far: NodeEnd | None = None
        self._opening: asyncio.Task[None] | None = None
        self._direction = TunnelDirection(shared.scheduler, transport, self._to_the_node, self.report_memory)
        self._is_paused = is_paused
        self._is_over = False
        self.is_open = False
        """Whether the node has accepted the handshake."""
        self.quiet_s = 0.0

    def begin(self) -> None:
        """Start the handshake with the node. Nothing is read from the client until the handshake ends."""
        self._transport.set_write_buffer_limits(_MAX_UNSENT_BYTES)
        self._direction.hold(True)
        self.report_memory()
        self._openings.begin(self)

    def open(self) -> None:
        """Connect to the node. `TunnelSlots` calls this method when a slot is free."""
        self._opening = asyncio.get_running_loop().create_task(self._open(), name="open a tunnel")

    async def _open(self) -> None:
        place = self._upstream.place
        try:
            async with asyncio.timeout(CONNECT_S):
                await asyncio.get_running_loop().create_connection(self._made, place.host, place.port)
        except OSError as error:
            self.refuse(502, self._upstream.problem(error))

    def _made(self) -> NodeEnd:
        self._far = NodeEnd(self, self._hello, self._shared)
        self._hello = b""
        return self._far

    # --- called by the node's end ----------------------------------------------------------------

    def opened(self) -> None:
        """Start copying after the node has accepted the handshake."""
        self.is_open, self.quiet_s = True, 0.0
        self._opening = None
        self._openings.end(self)
        self._direction.hold(False)
        if self._far is not None:
            self._far.hold(self._is_paused)
            if self._early:
                self._far.write(self._early)
        self._early = b""
        self.report_memory()

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""
        self.quiet_s = 0.0
        self._transport.write(data)

    def refuse(self, status: int, reason: str) -> None:
        """Answer the client's WebSocket handshake with an HTTP error, and close the connection."""
        if not self._is_over:
            self.answer(failure(self._upstream.kind, status, f"{self._upstream.name}: {reason}"))

    def answer(self, response: Response) -> None:
        self._transport.write(response_head(response, b"", False, False) + b"".join(response.body))
        self.end()

    def hold(self, is_held: bool) -> None:
        """Pause or resume reading from the client."""
        self._direction.hold(is_held or not self.is_open)
        self.report_memory()

    def end(self) -> None:
        """Close the tunnel after the node has disconnected. Bytes that are already written are still sent."""
        self._is_over = True
        self._direction.end()
        self._openings.end(self)
        self._transport.close()

    # --- called by the event loop ----------------------------------------------------------------

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._openings.end(self)
        self._direction.end()
        self._closed(self)
        self._shared.budget.settle(self)
        self._early = b""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self._far is not None:
            self._far.end()
            self._far = None

    def data_received(self, data: bytes) -> None:
        if self._far is not None and self.is_open:
            self.quiet_s = 0.0
            self._direction.receive(data)

    def _to_the_node(self, data: bytes) -> None:
        if self._far is not None:
            self._far.write(data)

    def pause_writing(self) -> None:
        self._is_paused, self.quiet_s = True, 0.0
        if self._far is not None:
            self._far.hold(True)
        self.report_memory()

    def resume_writing(self) -> None:
        self._is_paused = False
        if self._far is not None:
            self._far.hold(False)
        self.report_memory()

    # --- called by the service -------------------------------------------------------------------

    def tick(self, seconds: float) -> None:
        """Close the tunnel if the handshake has timed out or the client does not read."""
        self.quiet_s += seconds
        if (self._is_paused or self._is_over) and self.quiet_s > self._write_timeout_s:
            self._transport.abort()
        elif not self.is_open and not self._is_over and self.quiet_s > _HANDSHAKE_TIMEOUT_S:
            self.refuse(504, "no answer to the handshake")

    def idleness(self) -> float:
        """Return the seconds without traffic in either direction. `ConnectionSlots` calls this method."""
        return self.quiet_s if self.is_open else BUSY

    def evict(self) -> None:
        """Close the tunnel to free its slot for a new connection."""
        self._transport.abort()

    def cut_off(self) -> None:
        """Close the tunnel because all clients together hold too much memory (`MemoryBudget`)."""
        self._transport.abort()

    def close(self) -> None:
        """Close the tunnel because the service stops."""
        self.end()

    def report_memory(self) -> None:
        """Report the number of held bytes. Called while an end does not read or waits for a time slice."""
        size = len(self._early) + len(self._hello) + self._direction.held_bytes
        if not self._is_over:
            size += self._transport.get_write_buffer_size() + (0 if self._far is None else self._far.held_bytes)
        self._shared.budget.report_memory(self, size)


class NodeEnd(asyncio.Protocol):
    """The node's end of a tunnel."""

    __slots__ = ("_direction", "_head", "_hello", "_refused", "_shared", "_transport", "_tunnel")

    def __init__(self, tunnel: Tunnel, hello: bytes, shared: SharedResources) -> None:
        self._tunnel = tunnel
        self._hello = hello
        self._shared = shared
        self._transport: asyncio.Transport | None = None
        self._direction: TunnelDirection | None = None
        self._head = b""
        self._refused = 0
        """Bytes received so far of a response other than 101."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        node_transport = self._transport = cast(asyncio.Transport, transport)
        node_transport.set_write_buffer_limits(_MAX_UNSENT_BYTES)
        limit_read_size(node_transport)
        self._direction = TunnelDirection(
            self._shared.scheduler, node_transport, self._tunnel.write, self._tunnel.report_memory
        )
        node_transport.write(self._hello)
        self._hello = b""

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._direction is not None:
            self._direction.flush()
        if self._tunnel.is_open or self._refused:
            self._tunnel.end()
        else:
            self._tunnel.refuse(502, "has ended the connection instead of answering the handshake")

    def data_received(self, data: bytes) -> None:
        tunnel = self._tunnel
        if tunnel.is_open and self._direction is not None:
            self._direction.receive(data)
            return
        if self._refused:
            self._pass_refusal(data)
            return
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if not _OPENED.startswith(self._head[: len(_OPENED)]):
            self._pass_refusal(self._head)
        elif end >= 0:
            head, self._head = self._head, b""
            tunnel.write(head)
            tunnel.opened()
        elif len(self._head) > _MAX_HEAD_BYTES:
            self.end()

    def pause_writing(self) -> None:
        self._tunnel.hold(True)

    def resume_writing(self) -> None:
        self._tunnel.hold(False)

    def write(self, data: bytes) -> None:
        """Send bytes to the node."""
        if self._transport is not None:
            self._transport.write(data)

    @property
    def held_bytes(self) -> int:
        """Number of bytes held: bytes to send to the node, and bytes from the node that wait for a time slice."""
        transport, late = self._transport, 0 if self._direction is None else self._direction.held_bytes
        return late if transport is None or transport.is_closing() else late + transport.get_write_buffer_size()

    def hold(self, is_held: bool) -> None:
        """Pause or resume reading from the node."""
        if self._direction is not None:
            self._direction.hold(is_held)

    def end(self) -> None:
        """Close the connection to the node after the client has disconnected."""
        if self._direction is not None:
            self._direction.end()
        if self._transport is not None:
            self._transport.abort()

    def _pass_refusal(self, data: bytes) -> None:
        """Forward bytes of a response other than 101 to the client. Close the connection above a size limit."""
        self._refused += len(data)
        self._head = b""
        self._tunnel.write(data)
        if self._refused > _MAX_REFUSAL_BYTES:
            self.end()
