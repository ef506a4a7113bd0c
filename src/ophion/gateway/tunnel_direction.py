"""One direction of a tunnel: bytes that arrive at one end are written to the other, in time slices.

Passing bytes on is little work, but thousands of tunnels that have something to pass at the same moment are a second of
it, in which nobody else would be served. So what arrives when a turn is over waits for another one, and nothing more is
read meanwhile; those who have passed least lately come first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final

from ophion.runtime.fair_scheduler import FairScheduler, Share

_PIECE_S: Final = 20e-6
_BYTE_S: Final = 0.6e-9
"""What it costs to read something and write it again: most of it is done when the loop looks after its sockets, where
nobody measures it."""


class Flow:
    """What goes one way."""

    __slots__ = ("_is_held", "_is_over", "_is_reading", "_late", "_share", "_source", "_turns", "_weigh", "_write")

    def __init__(
        self, turns: FairScheduler, source: asyncio.Transport, write: Callable[[bytes], None], weigh: Callable[[], None]
    ) -> None:
        """`write` takes what `source` has sent; `weigh` is told when more or less is held than before."""
        self._turns = turns
        self._source = source
        self._write = write
        self._weigh = weigh
        self._share = Share()
        self._late = b""
        """What has arrived and waits for its turn."""
        self._is_held = self._is_over = False
        self._is_reading = True

    @property
    def held_bytes(self) -> int:
        return len(self._late)

    def receive(self, data: bytes) -> None:
        """Something has arrived."""
        if self._late:
            self._late += data
        elif self._turns.is_over:
            self._late = data
            self._settle()
            self._turns.wait(self, self._share.rank(len(data)))
            self._weigh()
        else:
            self._pass_on(data)

    def work(self) -> None:
        """The turn of this direction has come (`FairScheduler`)."""
        self.flush()
        self._settle()
        self._weigh()

    def flush(self) -> None:
        """Pass on what waits, whoever's turn it is: nothing more will come."""
        data, self._late = self._late, b""
        if data and not self._is_over:
            self._pass_on(data)

    def hold(self, is_held: bool) -> None:
        """The other end takes nothing at this moment, or does again."""
        self._is_held = is_held
        self._settle()

    def end(self) -> None:
        """One of the ends is gone."""
        self._is_over, self._late = True, b""

    def _pass_on(self, data: bytes) -> None:
        spent_s = _PIECE_S + len(data) * _BYTE_S
        self._turns.spend(spent_s)
        self._share.note(spent_s, perf_counter())
        self._write(data)

    def _settle(self) -> None:
        """Read, or do not."""
        wanted = not (self._is_held or self._late or self._is_over)
        if wanted != self._is_reading and not self._source.is_closing():
            self._is_reading = wanted
            if wanted:
                self._source.resume_reading()
            else:
                self._source.pause_reading()
