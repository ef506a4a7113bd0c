"""`ReceiveScheduler`: bounds the time of all connections on the event loop, and shares it fairly.

asyncio runs all ready callbacks before it polls timers and sockets again, so peers that send thousands of small
messages could block the loop. The scheduler runs short steps round robin, and stops after a few milliseconds until the
next iteration of the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from ophion.runtime.clock import Clock

SLICE_S: Final = 0.004
"""Seconds that all connections together may use in one iteration of the event loop."""


class ReceiveScheduler:
    """Round-robin queue of connection steps that still have work."""

    __slots__ = ("_clock", "_is_scheduled", "_loop", "_queue", "_slice")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, slice_s: float = SLICE_S) -> None:
        self._loop = loop
        self._clock = clock
        self._slice = slice_s
        self._queue: deque[Callable[[], bool]] = deque()
        self._is_scheduled = False

    def __len__(self) -> int:
        """Number of queued steps."""
        return len(self._queue)

    def add(self, step: Callable[[], bool]) -> None:
        """Call `step` soon, and repeat it until it returns False. `step` must not raise or be queued already."""
        self._queue.append(step)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._run_slice)

    def _run_slice(self) -> None:
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
            self._loop.call_soon(self._run_slice)
