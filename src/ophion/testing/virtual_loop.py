"""An event loop with virtual time. When no task is ready, it jumps to the next deadline.

Simulated minutes take milliseconds, and every run gives the same result. If no task can ever become ready, the loop
raises `Deadlock`. It supports neither threads nor sockets (use `InlineLanes`).
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from ophion.runtime.clock import ManualClock

T = TypeVar("T")


class Deadlock(Exception):
    """Raised when all tasks wait and no deadline is set."""


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that advances the clock instead of waiting."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise Deadlock("nothing is ready and no timer is set")
            if timeout > 0:
                self._clock.advance(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on a manual clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._manual_clock = clock
        super().__init__(_JumpingSelector(clock))

    def time(self) -> float:
        return self._manual_clock.monotonic()


def run_virtually(story: Coroutine[Any, Any, T], clock: ManualClock) -> T:
    """Run a coroutine like `asyncio.run`, in the virtual time of `clock`."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(story)
