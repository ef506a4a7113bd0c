"""Time and randomness, the only place that asks the machine for either.

Everything else receives a `Clock` or an `Entropy`, so a test decides what time it is and what is drawn. Three times are
kept apart: chain time (whole seconds in headers), wall time (`now`), and monotonic time for durations and deadlines.
"""

from __future__ import annotations

import os
import time
from typing import Protocol

from msgspec import Struct


class Clock(Protocol):
    """What time it is."""

    def now(self) -> float:
        """Wall time: seconds since 1970, UTC."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back. For durations and deadlines."""


class Entropy(Protocol):
    """Where unpredictable bytes come from: keys, filter ids, first nonces of a search."""

    def token(self, size: int) -> bytes: ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


class SystemEntropy:
    """The machine's random source."""

    __slots__ = ()

    token = staticmethod(os.urandom)


class ManualClock(Struct):
    """A clock that stands still until it is told otherwise."""

    wall: float = 1_700_000_000.0
    elapsed: float = 0.0

    def now(self) -> float:
        return self.wall + self.elapsed

    def monotonic(self) -> float:
        return self.elapsed

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.elapsed += seconds
