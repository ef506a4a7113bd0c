"""`ReceiveScheduler`: a bounded slice of the event loop for all connections together, shared fairly.

A peer that sends thousands of small messages, or twenty-five that do, would otherwise hold the loop for as long as they
like: asyncio runs everything that is ready before it looks at timers and sockets again. Here each connection with work
takes a short step in turn, and after a few milliseconds the rest waits for the next round of the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from ophion.runtime.clock import Clock

SLICE_S: Final = 0.004
"""What connections may take of one round of the loop."""


class ReceiveScheduler:
    """Who has work, in the order of coming."""

    __slots__ = ("_clock", "_is_scheduled", "_loop", "_queue", "_slice")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, slice_s: float = SLICE_S) -> None:
        self._loop = loop
        self._clock = clock
        self._slice = slice_s
        self._queue: deque[Callable[[], bool]] = deque()
        self._is_scheduled = False

    def __len__(self) -> int:
        """How many have work now."""
        return len(self._queue)

    def add(self, step: Callable[[], bool]) -> None:
        """Call `step` soon, and again until it answers that nothing is left. It must not raise.

        Whoever has a step in the queue must not add it a second time.
        """
        self._queue.append(step)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._round)

    def _round(self) -> None:
        queue, now = self._queue, self._clock.monotonic
        end = now() + self._slice
        while queue:
            step = queue.popleft()
            if step():
                queue.append(step)
            if now() >= end:
                break
        self._is_scheduled = bool(queue)
        if queue:
            self._loop.call_soon(self._round)
