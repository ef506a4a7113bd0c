"""Time and randomness: the only module that reads the system's clock and random source.

All other code receives a `Clock` or an `Entropy`, so that tests control both. There are three kinds of time: chain time
(whole seconds in headers), wall time (`now`), and monotonic time for durations and deadlines.
"""

from __future__ import annotations

import os
import time
from typing import Protocol

from msgspec import Struct


class Clock(Protocol):
    """Source of wall time and monotonic time (interface)."""

    def now(self) -> float:
        """Return the wall time: seconds since 1970, UTC."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start; never decreases. For durations and deadlines."""


class Entropy(Protocol):
    """Source of unpredictable bytes, for keys, filter ids and start nonces of mining."""

    def token(self, size: int) -> bytes: ...


class SystemClock:
    """The system clock."""

    __slots__ = ()

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


class SystemEntropy:
    """The system's random source."""

    __slots__ = ()

    token = staticmethod(os.urandom)


class ManualClock(Struct):
    """A clock that moves only when a test advances it."""

    wall: float = 1_700_000_000.0
    elapsed: float = 0.0

    def now(self) -> float:
        return self.wall + self.elapsed

    def monotonic(self) -> float:
        return self.elapsed

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        self.elapsed += seconds
