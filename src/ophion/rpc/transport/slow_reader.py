"""Detects clients that read their answers too slowly, and limits the bytes that they leave unread.

Reading a long answer over a slow link is allowed. But unread bytes stay in memory, and the number of streams is
limited. So a client that reads only a few bytes at long intervals counts as not reading.
"""

from __future__ import annotations

from typing import Final

MIN_BYTES: Final = 128 * 1024
"""Number of bytes that a client must read so that its write timeout starts again."""


_MIN_UNREAD_BYTES: Final = 128 * 1024
"""Unread bytes that every slow reader may leave, however many slow readers there are."""


def unread_capacity(max_bytes: int, max_bytes_in_all: int, slow_readers: int) -> int:
    """Return the maximum unread bytes of one client. All slow readers together share `max_bytes_in_all`."""
    return min(max_bytes, max(_MIN_UNREAD_BYTES, max_bytes_in_all // max(1, slow_readers)))


class SlowReaderCheck:
    """Measures how much of the send buffer one client reads between two checks."""

    __slots__ = ("_unsent",)

    def __init__(self) -> None:
        self._unsent = 0

    def begin(self, unsent: int) -> None:
        """Start measuring, when the send buffer is full."""
        self._unsent = unsent

    def has_read_enough(self, unsent: int) -> bool:
        """Return whether the client has read enough since the last check."""
        read = self._unsent - unsent
        if 0 <= read < MIN_BYTES:
            return False
        self._unsent = unsent
        return read > 0
