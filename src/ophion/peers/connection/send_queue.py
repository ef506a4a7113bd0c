"""`Outbox`: what waits to be sent to one peer, bounded in bytes.

Messages wait as they are and are sealed when the socket takes them: a block that goes to many peers is held once, and a
connection that ends has not encrypted anything for nothing.
"""

from __future__ import annotations

from collections import deque
from typing import Final

SOFT_LIMIT: Final = 2 * 1024 * 1024
"""Bytes that may wait before gossip is refused."""
HARD_LIMIT: Final = 16 * 1024 * 1024
"""Bytes that may wait before a peer that does not take them is given up. One message may pass it."""
BATCH: Final = 128 * 1024
"""Bytes sealed at a time."""
_OVERHEAD: Final = 64
"""What a message costs beside its payload; many empty ones are not free."""


class Outbox:
    """Messages in the order of sending."""

    __slots__ = ("_messages", "size")

    def __init__(self) -> None:
        self._messages: deque[tuple[int, bytes]] = deque()
        self.size = 0
        """Bytes of the messages that wait."""

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message_id: int, payload: bytes) -> None:
        """Add a message at the end."""
        self._messages.append((message_id, payload))
        self.size += len(payload) + _OVERHEAD

    def take(self) -> list[tuple[int, bytes]]:
        """The next messages, at least one if there is one, about as many as make a good write."""
        messages, batch, size = self._messages, [], 0
        while messages and size < BATCH:
            message = messages.popleft()
            batch.append(message)
            size += len(message[1]) + _OVERHEAD
        self.size -= size
        return batch

    def clear(self) -> None:
        """Forget what waits."""
        self._messages.clear()
        self.size = 0
