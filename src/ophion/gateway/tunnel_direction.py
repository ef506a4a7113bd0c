"""One direction of a tunnel: bytes that arrive at one end are written to the other, in time slices.

Copying is cheap, but thousands of tunnels that copy at the same moment would block the event loop for a second. So
bytes that arrive after the end of a time slice wait for the next slice. While bytes wait, their source is not read. The
direction that has waited longest copies first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final

from ophion.runtime.fair_scheduler import FairScheduler, LoopShare

_PIECE_CPU_S: Final = 20e-6
_BYTE_CPU_S: Final = 0.6e-9
"""CPU seconds to copy one byte. The value is an estimate, because most of the time is spent in socket calls."""


class TunnelDirection:
    """Copies bytes from one end of a tunnel to the other."""

    __slots__ = (
        "_held",
        "_is_held",
        "_is_over",
        "_is_reading",
        "_report_memory",
        "_scheduler",
        "_share",
        "_source",
        "_write",
    )

    def __init__(
        self,
        scheduler: FairScheduler,
        source: asyncio.Transport,
        write: Callable[[bytes], None],
        report_memory: Callable[[], None],
    ) -> None:
        """Create one direction of a tunnel. `write` sends bytes from `source` to the other end. `report_memory` is
        called when the number of held bytes changes.
        """
        self._scheduler = scheduler
        self._source = source
        self._write = write
        self._report_memory = report_memory
        self._share = LoopShare()
        self._held = b""
        """Bytes that wait for a time slice."""
        self._is_held = self._is_over = False
        self._is_reading = True

    @property
    def held_bytes(self) -> int:
        return len(self._held)

    def receive(self, data: bytes) -> None:
        """Copy received bytes now, or hold them until the next time slice."""
        if self._held:
            self._held += data
        elif self._scheduler.is_over:
            self._held = data
            self._settle()
            self._scheduler.wait(self, self._share.rank(len(data)))
            self._report_memory()
        else:
            self._pass_on(data)

    def work(self) -> None:
        """Copy held bytes. `FairScheduler` calls this method."""
        self.flush()
        self._settle()
        self._report_memory()

    def flush(self) -> None:
        """Copy all held bytes outside of a time slice, because the source has ended."""
        data, self._held = self._held, b""
        if data and not self._is_over:
            self._pass_on(data)

    def hold(self, is_held: bool) -> None:
        """Pause or resume copying, because the other end has stopped or started reading."""
        self._is_held = is_held
        self._settle()

    def end(self) -> None:
        """Drop held bytes after one end has disconnected."""
        self._is_over, self._held = True, b""

    def _pass_on(self, data: bytes) -> None:
        spent_s = _PIECE_CPU_S + len(data) * _BYTE_CPU_S
        self._scheduler.spend(spent_s)
        self._share.record(spent_s, perf_counter())
        self._write(data)

    def _settle(self) -> None:
        """Pause reading from the source while bytes are held or the other end does not read; resume it otherwise."""
        should_read = not (self._is_held or self._held or self._is_over)
        if should_read != self._is_reading and not self._source.is_closing():
            self._is_reading = should_read
            if should_read:
                self._source.resume_reading()
            else:
                self._source.pause_reading()
