"""`DevClock`: the time of the next block of a development chain."""

from __future__ import annotations

from msgspec import Struct

from ophion.errors import OphionError
from ophion.runtime.clock import Clock


class TimestampTooLow(OphionError):
    """The timestamp of a block is below its parent's."""

    def __init__(self, timestamp: int, last: int) -> None:
        self.last = last
        super().__init__(f"Timestamp error: {timestamp} is lower than previous block's timestamp")


class ClockState(Struct, frozen=True):
    """The part of a snapshot that belongs to the clock."""

    offset: float
    wall: float
    """Wall time of the snapshot, from which time continues after a revert."""
    exact: int | None
    interval: int | None


class DevClock:
    """The wall clock with an offset, unless the timestamp of the next block is set.

    Reading the time does not consume that timestamp; `on_block` does.
    """

    def __init__(self, clock: Clock, last: int = 0) -> None:
        self._clock = clock
        self.offset = 0.0
        self.exact: int | None = None
        """Timestamp of the next block."""
        self.interval: int | None = None
        """Seconds between blocks; None to follow the wall clock."""
        self.last = last
        """Timestamp of the head."""

    def now(self) -> float:
        """Timestamp of a block made now."""
        if self.exact is not None:
            return float(self.exact)
        if self.interval is not None:
            return float(self.last + self.interval)
        return self.shifted()

    def shifted(self) -> float:
        """Wall time plus offset."""
        return self._clock.now() + self.offset

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def increase(self, seconds: int) -> int:
        """Advance the clock; returns the total offset."""
        self.offset += seconds
        return round(self.offset)

    def set_time(self, timestamp: float) -> int:
        """Set the current time; returns the seconds by which the clock has advanced."""
        moved = max(0, round(timestamp - self.shifted()))
        self.offset = timestamp - self._clock.now()
        self.exact = None
        return moved

    def set_next(self, timestamp: int, allow_equal: bool = True) -> None:
        """Set the timestamp of the next block; the clock continues from it."""
        if timestamp < self.last or (timestamp == self.last and not allow_equal):
            raise TimestampTooLow(timestamp, self.last)
        self.exact = timestamp

    def on_block(self, timestamp: int) -> None:
        """Note that a block with this timestamp is the new head."""
        if self.exact is not None:
            self.offset = timestamp - self._clock.now()
            self.exact = None
        self.last = timestamp

    def state(self) -> ClockState:
        """The state to save in a snapshot."""
        return ClockState(self.offset, self._clock.now(), self.exact, self.interval)

    def restore(self, state: ClockState, last: int) -> None:
        """Continue from the time of the snapshot."""
        self.offset = state.offset + state.wall - self._clock.now()
        self.exact, self.interval, self.last = state.exact, state.interval, last
