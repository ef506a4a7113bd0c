"""The block timer and the round timer of a validator. Both timers tolerate changes of the system clock.

The block timer follows the wall clock, because a block is due at a wall time. The round timer uses monotonic time: a
clock set back by an hour must not keep a validator in a round for an hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ophion.consensus.bft.events import BftEvent, SetTimer, TimerKind
from ophion.runtime.clock import Clock

_EARLY_S: Final = 0.005
"""Seconds by which a timer may fire before its wall time. A larger difference means that the clock was set back."""
_MAX_WAIT_S: Final = 1.0
"""Maximum seconds until the clock is read again. During a longer wait, a clock that is set forward would go
unnoticed.
"""


class BftTimers:
    """The running block timer and round timer, at most one of each."""

    def __init__(self, clock: Clock, expired: Callable[[BftEvent], None]) -> None:
        self._clock = clock
        self._expired = expired
        self._running: dict[TimerKind, asyncio.TimerHandle] = {}

    def set(self, order: SetTimer) -> None:
        """Set a timer that delivers the event of `order` at its due time. Replaces a timer of the same kind."""
        self.cancel(order.kind)
        wait_s = max(0.0, order.at - self._clock.now())
        if order.kind is TimerKind.BLOCK:
            wait_s = min(wait_s, _MAX_WAIT_S)
        self._running[order.kind] = asyncio.get_running_loop().call_later(wait_s, self._wake, order)

    def cancel(self, kind: TimerKind) -> None:
        """Cancel a timer. Does nothing if it is not running."""
        timer = self._running.pop(kind, None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        for kind in TimerKind:
            self.cancel(kind)

    def _wake(self, order: SetTimer) -> None:
        if order.kind is TimerKind.BLOCK and self._clock.now() < order.at - _EARLY_S:
            self.set(order)
        else:
            self._running.pop(order.kind, None)
            self._expired(order.event)
