"""Detects clients that read their answers too slowly.

A long answer over a slow link is fine. But unread bytes stay in memory, and open streams are limited. A client that
reads only a few bytes now and then counts as one that does not read.
"""

from __future__ import annotations

from typing import Final

MIN_BYTES: Final = 128 * 1024
"""Bytes that a client must read to restart its timeout."""


class SlowReaderCheck:
    """Compares the send buffer of one client between two checks."""

    __slots__ = ("_unsent",)

    def __init__(self) -> None:
        self._unsent = 0

    def begin(self, unsent: int) -> None:
        """Start when the send buffer is full."""
        self._unsent = unsent

    def goes_on(self, unsent: int) -> bool:
        """Whether the client has read enough since the last check."""
        read = self._unsent - unsent
        if 0 <= read < MIN_BYTES:
            return False
        self._unsent = unsent
        return read > 0
