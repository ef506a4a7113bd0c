"""`MessageReassembly`: large messages that have arrived in part, bounded in bytes for all connections together.

One message may have 16 MiB, and two dozen strangers that send all but its last bytes would have 400 MiB held for them.
A message of an honest peer is whole in a moment, so the one goes that has been arriving for longest.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

LARGE: Final = 1024 * 1024
"""Parts of messages that are shorter do not count: there are many, and they are soon whole."""
MOST: Final = 64 * 1024 * 1024

T = TypeVar("T")


class MessageReassembly(Generic[T]):
    """Who has how much of a large message here, in the order of its becoming large."""

    __slots__ = ("_sizes", "total")

    def __init__(self) -> None:
        self._sizes: dict[T, int] = {}
        self.total = 0
        """Bytes."""

    def note(self, sender: T, size: int) -> T | None:
        """So much is here of the message of a sender; returns who has to go because there is too much."""
        if size < LARGE:
            self.total -= self._sizes.pop(sender, 0)
            return None
        self.total += size - self._sizes.get(sender, 0)
        self._sizes[sender] = size
        return next(iter(self._sizes)) if self.total > MOST else None
