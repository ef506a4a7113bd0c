"""Whether a client whose buffer is full still takes what was written for it.

A long answer over a slow line takes its time. But what a client has not taken is held for it, and a stream for it is
one of a few: whoever takes a byte now and then takes nothing.
"""

from __future__ import annotations

from typing import Final

MIN_BYTES: Final = 128 * 1024
"""What must be taken for the time to begin anew."""


class SlowReaderCheck:
    """How much one client had to take when that was last looked at."""

    __slots__ = ("_unsent",)

    def __init__(self) -> None:
        self._unsent = 0

    def begin(self, unsent: int) -> None:
        """Its buffer is full with so many bytes."""
        self._unsent = unsent

    def goes_on(self, unsent: int) -> bool:
        """So many are left: whether enough were taken since it was last so."""
        taken = self._unsent - unsent
        if 0 <= taken < MIN_BYTES:
            return False
        self._unsent = unsent
        return taken > 0
