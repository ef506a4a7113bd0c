"""Timeouts of each stage of a connection (networking.md 1.3, 1.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct


class StageTimeouts(Struct, frozen=True):
    """Timeouts in seconds; tests shorten them."""

    connect: float = 10.0
    """Timeout of the TCP connection attempt."""
    handshake: float = 5.0
    """Timeout of the RLPx auth and ack messages."""
    hello: float = 5.0
    """Timeout from the end of the handshake to the Hello of the remote node."""
    idle: float = 15.0
    """Seconds of silence before this node sends a Ping. After the same time without a Pong the peer times out."""
    message: float = 60.0
    """Timeout from the first to the last byte of one message."""
    closing: float = 2.0
    """Timeout from our Disconnect until the remote node closes the connection."""
    probe: float = 2.0
    """Timeout of the Ping that this node sends when a second connection proves the same node key."""


class StageTimer:
    """The timer for the current stage of a connection."""

    __slots__ = ("_handle", "due_at")

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None
        self.due_at = 0.0
        """Monotonic time at which the timer should fire. The timer fires later if this process is stalled."""

    def arm(self, loop: asyncio.AbstractEventLoop, due_at: float, seconds: float, fire: Callable[[], None]) -> None:
        """Call `fire` once after the given seconds. Replaces an earlier timer."""
        self.cancel()
        self.due_at = due_at
        self._handle = loop.call_later(seconds, fire)

    def cancel(self) -> None:
        """Cancel the timeout, so that its callback is not called."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
