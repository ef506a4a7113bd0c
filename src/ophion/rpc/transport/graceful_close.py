"""What a client still sends although it has been told that nobody listens.

Closing a socket with something unread in it makes the other side drop what it was told last together with the
connection. So the connection is closed for writing only, and what still comes is thrown away: up to a limit, for some
seconds, and when the loop has nothing better to do: of thousands that go on sending, some are read from in each turn.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ophion.runtime.fair_scheduler import LAST, FairScheduler

_MAX_BYTES: Final = 64 * 1024 * 1024
READ_S: Final = 30e-6
"""What it costs to read something and throw it away."""


class GracefulClose:
    """The end of one connection."""

    __slots__ = ("_is_waiting", "_left", "_transport", "_turns")

    def __init__(self, transport: asyncio.Transport, turns: FairScheduler) -> None:
        self._transport = transport
        self._turns = turns
        self._left = _MAX_BYTES
        self._is_waiting = False
        if transport.can_write_eof():
            transport.write_eof()
            self._put_aside()
        else:
            transport.close()  # TLS knows no half-closed connections

    def receive(self, size: int) -> None:
        """So much has come."""
        self._left -= size
        if self._left < 0:
            self._transport.abort()
        elif not self._is_waiting:
            self._put_aside()

    def _put_aside(self) -> None:
        self._is_waiting = True
        self._transport.pause_reading()
        self._turns.wait(self, LAST)

    def work(self) -> None:
        """Look at what has come meanwhile."""
        self._is_waiting = False
        if not self._transport.is_closing():
            self._turns.spend(READ_S)
            self._transport.resume_reading()
