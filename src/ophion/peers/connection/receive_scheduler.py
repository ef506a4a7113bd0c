"""`ReceiveScheduler`: bounds the time of all connections on the event loop, and shares it fairly.

asyncio runs all ready callbacks before it polls timers and sockets again, so peers that send thousands of small
messages could block the loop. The scheduler runs short steps round robin, and stops after a few milliseconds until the
next iteration of the loop. Network members (validators, static and permitted nodes) get every second step, so any
number of unknown peers cannot delay members.
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
    """Runs pending receive steps from two round-robin queues: one for network members (validators, static and permitted
    nodes), one for unknown peers.
    """

    __slots__ = ("_clock", "_is_members_turn", "_is_scheduled", "_loop", "_members", "_slice", "_unknown")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, slice_s: float = SLICE_S) -> None:
        self._loop = loop
        self._clock = clock
        self._slice = slice_s
        self._members: deque[Callable[[], bool]] = deque()
        self._unknown: deque[Callable[[], bool]] = deque()
        self._is_members_turn = True
        self._is_scheduled = False

    def __len__(self) -> int:
        """Number of queued receive steps."""
        return len(self._members) + len(self._unknown)

    def add(self, step: Callable[[], bool], is_member: bool = False) -> None:
        """Call `step` soon, and again until it returns False (no work left). `step` must not raise, and must not be
        queued already.
        """
        (self._members if is_member else self._unknown).append(step)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._run_slice)

    def _run_slice(self) -> None:
        members, unknown, now = self._members, self._unknown, self._clock.monotonic
        end = now() + self._slice
        while members or unknown:
            queue = members if members and (self._is_members_turn or not unknown) else unknown
            self._is_members_turn = queue is unknown
            step = queue.popleft()
            if step():
                queue.append(step)
            if now() >= end:
                break
        self._is_scheduled = bool(members or unknown)
        if self._is_scheduled:
            self._loop.call_soon(self._run_slice)
