"""`DevClock`: the time of the next block of a development chain."""

from __future__ import annotations

from msgspec import Struct

from ophion.errors import OphionError
from ophion.runtime.clock import Clock


class TimestampTooLow(OphionError):
    """A block cannot be older than its parent."""

    def __init__(self, timestamp: int, last: int) -> None:
        self.last = last
        super().__init__(f"Timestamp error: {timestamp} is lower than previous block's timestamp")


class ClockState(Struct, frozen=True):
    """What a snapshot keeps of the clock."""

    offset: float
    wall: float
    """Wall time of the snapshot: time goes on from there after a revert."""
    exact: int | None
    interval: int | None


class DevClock:
    """The wall clock with an offset, unless the next block has a time of its own.

    Asking for the time does not use it up; `on_block` does.
    """

    def __init__(self, clock: Clock, last: int = 0) -> None:
        self._clock = clock
        self.offset = 0.0
        self.exact: int | None = None
        """Timestamp of the next block."""
        self.interval: int | None = None
        """Seconds between blocks; None for those of the wall clock."""
        self.last = last
        """Timestamp of the head."""

    def now(self) -> float:
        """When the next block is made."""
        if self.exact is not None:
            return float(self.exact)
        if self.interval is not None:
            return float(self.last + self.interval)
        return self.shifted()

    def shifted(self) -> float:
        """Wall time and offset."""
        return self._clock.now() + self.offset

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def increase(self, seconds: int) -> int:
        """Move the clock on; gives the whole offset."""
        self.offset += seconds
        return round(self.offset)

    def set_time(self, timestamp: float) -> int:
        """Make this the present time; gives the seconds by which the clock has moved on."""
        moved = max(0, round(timestamp - self.shifted()))
        self.offset = timestamp - self._clock.now()
        self.exact = None
        return moved

    def set_next(self, timestamp: int, allow_equal: bool = True) -> None:
        """Give the next block this timestamp; later ones follow it."""
        if timestamp < self.last or (timestamp == self.last and not allow_equal):
            raise TimestampTooLow(timestamp, self.last)
        self.exact = timestamp

    def on_block(self, timestamp: int) -> None:
        """A block with this timestamp is the head."""
        if self.exact is not None:
            self.offset = timestamp - self._clock.now()
            self.exact = None
        self.last = timestamp

    def state(self) -> ClockState:
        """For a snapshot."""
        return ClockState(self.offset, self._clock.now(), self.exact, self.interval)

    def restore(self, state: ClockState, last: int) -> None:
        """Time goes on from the moment of the snapshot."""
        self.offset = state.offset + state.wall - self._clock.now()
        self.exact, self.interval, self.last = state.exact, state.interval, last
