"""An event loop whose time is made up: it jumps to the next deadline when nothing is ready.

A story of minutes takes milliseconds and comes out the same every time. Where nothing is ready and nothing ever will
be, the loop raises instead of hanging. Only for stories without threads and sockets (`InlineLanes`).
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from ophion.runtime.clock import ManualClock

T = TypeVar("T")


class Deadlock(Exception):
    """Everybody waits and nobody has set a deadline."""


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting, lets the clock advance by the time that would have been waited."""

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
    """A loop on a manual clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._manual_clock = clock
        super().__init__(_JumpingSelector(clock))

    def time(self) -> float:
        return self._manual_clock.monotonic()


def run_virtually(story: Coroutine[Any, Any, T], clock: ManualClock) -> T:
    """As `asyncio.run`, in the time of `clock`."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(story)
