"""`DevClock`: the time of the next block of a development chain."""

from __future__ import annotations

from msgspec import Struct

from ophion.errors import OphionError
from ophion.runtime.clock import Clock


class TimestampTooLow(OphionError):
    """Raised when the timestamp of a block is below the timestamp of its parent."""

    def __init__(self, timestamp: int, last: int) -> None:
        self.timestamp, self.last = timestamp, last
        super().__init__(f"Timestamp error: {timestamp} is lower than previous block's timestamp")


class ClockState(Struct, frozen=True):
    """Fields of the clock that a snapshot saves."""

    offset: float
    wall: float
    """Wall time of the snapshot. After a revert, the clock continues from this time."""
    exact: int | None
    interval: int | None


class DevClock:
    """The wall clock plus an offset. A test can also set the timestamp of the next block.

    A timestamp that a test has set stays until `on_block` clears it.
    """

    def __init__(self, clock: Clock, last: int = 0) -> None:
        self._clock = clock
        self.offset = 0.0
        self.exact: int | None = None
        """Timestamp that a test has set for the next block, or None."""
        self.interval: int | None = None
        """Seconds between blocks; None if blocks follow the wall clock."""
        self.last = last
        """Timestamp of the head."""

    def now(self) -> float:
        """Return the timestamp of a block that is made now. If the clock is behind the head, the next second counts."""
        if self.exact is not None:
            return float(self.exact)
        if self.interval is not None:
            return float(self.last + self.interval)
        shifted = self.shifted()
        return shifted if int(shifted) >= self.last else float(self.last + 1)

    def shifted(self) -> float:
        """Return the wall time plus the offset that tests have set."""
        return self._clock.now() + self.offset

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def increase(self, seconds: int) -> int:
        """Advance the clock. Returns the total offset in seconds."""
        self.offset += seconds
        return round(self.offset)

    def set_time(self, timestamp: float) -> int:
        """Set the current time. Returns the number of seconds by which the clock advanced."""
        moved = max(0, round(timestamp - self.shifted()))
        self.offset = timestamp - self._clock.now()
        self.exact = None
        return moved

    def set_next(self, timestamp: int, allow_equal: bool = True) -> None:
        """Set the timestamp of the next block.

        After that block the clock continues from this time. Raises `TimestampTooLow` for a timestamp before the head's,
        and for the head's timestamp unless `allow_equal` is set.
        """
        if timestamp < self.last or (timestamp == self.last and not allow_equal):
            raise TimestampTooLow(timestamp, self.last)
        self.exact = timestamp

    def on_block(self, timestamp: int) -> None:
        """Record the timestamp of the new head, and clear the timestamp that a test has set."""
        if self.exact is not None:
            self.offset = timestamp - self._clock.now()
            self.exact = None
        self.last = timestamp

    def state(self) -> ClockState:
        """Return the fields to save in a snapshot."""
        return ClockState(self.offset, self._clock.now(), self.exact, self.interval)

    def restore(self, state: ClockState, last: int) -> None:
        """Set the clock back to the time of a snapshot."""
        self.offset = state.offset + state.wall - self._clock.now()
        self.exact, self.interval, self.last = state.exact, state.interval, last
