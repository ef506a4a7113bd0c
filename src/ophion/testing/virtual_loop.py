"""An event loop with virtual time: it jumps to the next deadline when nothing is ready.

Minutes take milliseconds, and every run gives the same result. The loop raises when nothing can ever become ready. It
works without threads and sockets only (`InlineLanes`).
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from ophion.runtime.clock import ManualClock

T = TypeVar("T")


class Deadlock(Exception):
    """All tasks wait, and there is no deadline."""


class _JumpingSelector(selectors.DefaultSelector):
    """Advances the clock instead of waiting."""

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
    """Like `asyncio.run`, in the time of `clock`."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(story)
