"""One WebSocket that is passed through: after the handshake bytes go both ways as they come.

    client <-> Tunnel <-> FarEnd <-> node

The node speaks WebSocket with the client: it checks frames, pings, and closes. A tunnel sees to four things: only what
the node has accepted with 101 becomes a tunnel, whatever else it answers is passed on and then the connection ends, so
that nobody talks HTTP to the port behind; who does not read is not written to, and nothing is read for him at the other
end; when one end goes, so does the other; and thousands of tunnels with much to say leave the loop to those who ask for
little: bytes are passed on in turn (flow.py), and a few tunnels are opened at a time (`Openings`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from ophion.gateway.error_responses import failure
from ophion.gateway.tunnel_direction import Flow
from ophion.gateway.upstream import CONNECT_S, Upstream, take_little
from ophion.rpc.transport.connection_slots import BUSY
from ophion.rpc.transport.http.messages import Response, response_head
from ophion.rpc.transport.shared_resources import SharedResources

_UNSENT_BYTES: Final = 32 * 1024
"""What may wait for one end before the other is not read any more."""
_MAX_HEAD_BYTES: Final = 16 * 1024
_MAX_REFUSAL_BYTES: Final = 64 * 1024
_HANDSHAKE_S: Final = 10.0
_OPENED: Final = b"HTTP/1.1 101 "
_MAX_OPENING: Final = 32
"""A tunnel is as much work as some dozen usual requests until it stands."""


class Openings:
    """The tunnels that are being opened: some at a time, the others stand in line."""

    def __init__(self, most: int = _MAX_OPENING) -> None:
        self._most = most
        self._under_way: set[Tunnel] = set()
        self._line: dict[Tunnel, None] = {}

    def begin(self, tunnel: Tunnel) -> None:
        """One more, now or when its turn has come."""
        if len(self._under_way) < self._most:
            self._under_way.add(tunnel)
            tunnel.open()
        else:
            self._line[tunnel] = None

    def end(self, tunnel: Tunnel) -> None:
        """It stands, or never will; saying so twice does no harm."""
        self._line.pop(tunnel, None)
        if tunnel in self._under_way:
            self._under_way.remove(tunnel)
            if self._line:
                following = next(iter(self._line))
                del self._line[following]
                self.begin(following)


class Tunnel(asyncio.Protocol):
    """The end of the client."""

    __slots__ = (
        "_closed",
        "_early",
        "_far",
        "_flow",
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
        openings: Openings,
        write_timeout_s: float,
        is_paused: bool = False,
    ) -> None:
        """`hello` asks the node for a socket; `early` is what the client has sent behind its own. `is_paused`: it has
        not taken what was written before."""
        self._transport = transport
        self._upstream = upstream
        self._hello = hello
        self._early = early
        self._closed = closed
        self._shared = shared
        self._openings = openings
        self._write_timeout_s = write_timeout_s
        self._far: FarEnd | None = None
        self._opening: asyncio.Task[None] | None = None
        self._flow = Flow(shared.turns, transport, self._to_the_node, self.weigh)
        self._is_paused = is_paused
        self._is_over = False
        self.is_open = False
        """Whether the node has accepted."""
        self.quiet_s = 0.0

    def begin(self) -> None:
        """Ask the node; the client is not read from until it has answered."""
        self._transport.set_write_buffer_limits(_UNSENT_BYTES)
        self._flow.hold(True)
        self.weigh()
        self._openings.begin(self)

    def open(self) -> None:
        """The turn of this tunnel has come (`Openings`)."""
        self._opening = asyncio.get_running_loop().create_task(self._open(), name="open a tunnel")

    async def _open(self) -> None:
        place = self._upstream.place
        try:
            async with asyncio.timeout(CONNECT_S):
                await asyncio.get_running_loop().create_connection(self._made, place.host, place.port)
        except OSError as error:
            self.refuse(502, self._upstream.problem(error))

    def _made(self) -> FarEnd:
        self._far = FarEnd(self, self._hello, self._shared)
        self._hello = b""
        return self._far

    # --- called by the far end -------------------------------------------------------------------

    def opened(self) -> None:
        """The node has accepted: from here on bytes go both ways."""
        self.is_open, self.quiet_s = True, 0.0
        self._opening = None
        self._openings.end(self)
        self._flow.hold(False)
        if self._far is not None:
            self._far.hold(self._is_paused)
            if self._early:
                self._far.write(self._early)
        self._early = b""
        self.weigh()

    def write(self, data: bytes) -> None:
        """Something for the client."""
        self.quiet_s = 0.0
        self._transport.write(data)

    def refuse(self, status: int, reason: str) -> None:
        """There is no socket, and the client is told why."""
        if not self._is_over:
            self.answer(failure(self._upstream.kind, status, f"{self._upstream.name}: {reason}"))

    def answer(self, response: Response) -> None:
        self._transport.write(response_head(response, b"", False, False) + b"".join(response.body))
        self.end()

    def hold(self, is_held: bool) -> None:
        """The node does not take what the client sends, or does again."""
        self._flow.hold(is_held or not self.is_open)
        self.weigh()

    def end(self) -> None:
        """The other end is gone; what has been written still leaves, and nothing more is passed on."""
        self._is_over = True
        self._flow.end()
        self._openings.end(self)
        self._transport.close()

    # --- called by the loop ----------------------------------------------------------------------

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._openings.end(self)
        self._flow.end()
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
            self._flow.receive(data)

    def _to_the_node(self, data: bytes) -> None:
        if self._far is not None:
            self._far.write(data)

    def pause_writing(self) -> None:
        self._is_paused, self.quiet_s = True, 0.0
        if self._far is not None:
            self._far.hold(True)
        self.weigh()

    def resume_writing(self) -> None:
        self._is_paused = False
        if self._far is not None:
            self._far.hold(False)
        self.weigh()

    # --- called by the service -------------------------------------------------------------------

    def tick(self, seconds: float) -> None:
        """Some time has passed."""
        self.quiet_s += seconds
        if (self._is_paused or self._is_over) and self.quiet_s > self._write_timeout_s:
            self._transport.abort()
        elif not self.is_open and not self._is_over and self.quiet_s > _HANDSHAKE_S:
            self.refuse(504, "no answer to the handshake")

    def idleness(self) -> float:
        """Seconds in which nothing went either way (`ConnectionSlots`)."""
        return self.quiet_s if self.is_open else BUSY

    def give_way(self) -> None:
        """Somebody else takes the place."""
        self._transport.abort()

    def cut_off(self) -> None:
        """All clients together hold too much (`Budget`)."""
        self._transport.abort()

    def close(self) -> None:
        """The service stops."""
        self.end()

    def weigh(self) -> None:
        """Note what this tunnel holds; it is worth noting only where an end does not read, or waits for its turn."""
        size = len(self._early) + len(self._hello) + self._flow.held_bytes
        if not self._is_over:
            size += self._transport.get_write_buffer_size() + (0 if self._far is None else self._far.held_bytes)
        self._shared.budget.weigh(self, size)


class FarEnd(asyncio.Protocol):
    """The end of the node."""

    __slots__ = ("_flow", "_head", "_hello", "_refused", "_shared", "_transport", "_tunnel")

    def __init__(self, tunnel: Tunnel, hello: bytes, shared: SharedResources) -> None:
        self._tunnel = tunnel
        self._hello = hello
        self._shared = shared
        self._transport: asyncio.Transport | None = None
        self._flow: Flow | None = None
        self._head = b""
        self._refused = 0
        """Bytes of an answer that was not the right one."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        made = self._transport = cast(asyncio.Transport, transport)
        made.set_write_buffer_limits(_UNSENT_BYTES)
        take_little(made)
        self._flow = Flow(self._shared.turns, made, self._tunnel.write, self._tunnel.weigh)
        made.write(self._hello)
        self._hello = b""

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._flow is not None:
            self._flow.flush()
        if self._tunnel.is_open or self._refused:
            self._tunnel.end()
        else:
            self._tunnel.refuse(502, "has ended the connection instead of answering the handshake")

    def data_received(self, data: bytes) -> None:
        tunnel = self._tunnel
        if tunnel.is_open and self._flow is not None:
            self._flow.receive(data)
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
        """Something for the node."""
        if self._transport is not None:
            self._transport.write(data)

    @property
    def held_bytes(self) -> int:
        """What the node has not taken, and what it has sent and waits for its turn."""
        transport, late = self._transport, 0 if self._flow is None else self._flow.held_bytes
        return late if transport is None or transport.is_closing() else late + transport.get_write_buffer_size()

    def hold(self, is_held: bool) -> None:
        """The client does not take what the node sends, or does again."""
        if self._flow is not None:
            self._flow.hold(is_held)

    def end(self) -> None:
        """The client is gone."""
        if self._flow is not None:
            self._flow.end()
        if self._transport is not None:
            self._transport.abort()

    def _pass_refusal(self, data: bytes) -> None:
        """The node has answered otherwise: the client may know, and that is all."""
        self._refused += len(data)
        self._head = b""
        self._tunnel.write(data)
        if self._refused > _MAX_REFUSAL_BYTES:
            self.end()
