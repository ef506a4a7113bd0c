"""`MessageReassembly`: bounds the bytes of partly received large messages, for all connections together.

A message may have 16 MiB. Without a limit, 25 peers that each withhold the last bytes of a message would make this node
hold 400 MiB. Messages of honest peers complete quickly, so the limit evicts the connection whose message has been
incomplete for longest.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

LARGE: Final = 1024 * 1024
"""Size in bytes from which an incomplete message counts against the limit. Smaller messages complete quickly."""
MAX_PARTIAL_BYTES: Final = 64 * 1024 * 1024

T = TypeVar("T")


class MessageReassembly(Generic[T]):
    """Received bytes of incomplete large messages by connection, oldest first."""

    __slots__ = ("_sizes", "total")

    def __init__(self) -> None:
        self._sizes: dict[T, int] = {}
        self.total = 0
        """Received bytes of the incomplete large messages of all connections."""

    def record(self, sender: T, size: int) -> T | None:
        """Record the received bytes of an incomplete message. Returns the connection to disconnect if all incomplete
        large messages together exceed the limit, else None.
        """
        if size < LARGE:
            self.total -= self._sizes.pop(sender, 0)
            return None
        self.total += size - self._sizes.get(sender, 0)
        self._sizes[sender] = size
        return next(iter(self._sizes)) if self.total > MAX_PARTIAL_BYTES else None
