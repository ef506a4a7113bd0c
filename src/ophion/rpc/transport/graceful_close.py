"""Graceful close: discards input that arrives after the last answer.

Closing a socket with unread input resets the connection, and the client may lose the last answer. So the node closes
only its sending side and discards further input, up to a limit and for some seconds. Such reads have the lowest
priority, and few run in each time slice, because thousands of clients may continue to send.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ophion.runtime.fair_scheduler import LAST, FairScheduler

_MAX_BYTES: Final = 64 * 1024 * 1024
READ_S: Final = 30e-6
"""Processor time, in seconds, of one read whose input is discarded."""


class GracefulClose:
    """Discards the input of a connection to which the last answer has been sent."""

    __slots__ = ("_is_scheduled", "_left", "_scheduler", "_transport")

    def __init__(self, transport: asyncio.Transport, scheduler: FairScheduler) -> None:
        self._transport = transport
        self._scheduler = scheduler
        self._left = _MAX_BYTES
        self._is_scheduled = False
        if transport.can_write_eof():
            transport.write_eof()
            self._schedule()
        else:
            transport.close()  # TLS does not support half-closed connections, so close both directions

    def receive(self, size: int) -> None:
        """Count discarded bytes; abort the connection above the limit."""
        self._left -= size
        if self._left < 0:
            self._transport.abort()
        elif not self._is_scheduled:
            self._schedule()

    def _schedule(self) -> None:
        self._is_scheduled = True
        self._transport.pause_reading()
        self._scheduler.wait(self, LAST)

    def work(self) -> None:
        """Read more input; called by the fair scheduler."""
        self._is_scheduled = False
        if not self._transport.is_closing():
            self._scheduler.spend(READ_S)
            self._transport.resume_reading()
