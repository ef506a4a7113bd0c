"""Messages between a node and a worker, over a socket pair.

    size (4) of the payload | kind (1) | number of the request (8) | payload

Numbers in parentheses are sizes in bytes. Frames of one iteration of the event loop are written together.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from enum import IntEnum
from struct import Struct as Layout
from typing import Final, cast

_HEAD: Final = Layout("<IBQ")
_MAX_READ_BYTES: Final = 1 << 20


class FrameKind(IntEnum):
    """Meaning of a frame. The node sends SETUP, HEAD, ANSWER and STOP; the worker sends all other kinds."""

    SETUP = 1
    """Configuration, genesis and identity of the node: the first frame, which the worker reads before it starts its
    event loop.
    """
    HEAD = 2
    """The shared memory has a new head. Idle workers read the head too, so that they do not keep an old snapshot open.
    """
    ANSWER = 3
    """The answer to a forwarded request."""
    STOP = 4
    READY = 5
    """The worker accepts clients."""
    REQUEST = 6
    """A JSON-RPC message for the node."""
    PATH = 7
    """An HTTP request for a path other than the JSON-RPC path."""
    CANCEL = 8
    """The client of a forwarded request has disconnected."""
    CLOSED = 11
    """How many of the connections that the worker has received are closed."""
    METRICS = 9
    """Counters of the worker since the last such frame."""
    LOG = 10
    """A line for the log of the node."""


def read_frame(sock: socket.socket) -> tuple[FrameKind, bytes]:
    """Read one frame from a blocking socket. Raises `EOFError` if the other process has ended."""
    size, kind, _ = _HEAD.unpack(_read(sock, _HEAD.size))
    return FrameKind(kind), _read(sock, size)


def _read(sock: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = sock.recv(min(size, _MAX_READ_BYTES))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class FrameLink(asyncio.Protocol):
    """One end of the socket pair."""

    def __init__(self, receive: Callable[[FrameKind, int, bytes], None], lost: Callable[[], None]) -> None:
        """Create a link. `receive` gets kind, number and payload of each frame. `lost` is called when the other process
        has closed its end.
        """
        self._receive = receive
        self._lost = lost
        self._transport: asyncio.WriteTransport | None = None
        self._input = bytearray()
        self._output: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def send(self, kind: FrameKind, number: int = 0, payload: bytes = b"") -> None:
        """Send a frame at the end of this iteration of the event loop."""
        if not self._output:
            self._loop.call_soon(self.flush)
        self._output += (_HEAD.pack(len(payload), kind, number), payload)

    def flush(self) -> None:
        """Write the frames that wait."""
        output, self._output = self._output, []
        if output and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(output))

    def close(self) -> None:
        """Close this end of the socket pair."""
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self.flush()

    def data_received(self, data: bytes) -> None:
        received = self._input
        received += data
        start = 0
        while len(received) - start >= _HEAD.size:
            size, kind, number = _HEAD.unpack_from(received, start)
            end = start + _HEAD.size + size
            if len(received) < end:
                break
            payload = bytes(received[start + _HEAD.size : end])
            start = end
            self._receive(FrameKind(kind), number, payload)
        del received[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._lost()
