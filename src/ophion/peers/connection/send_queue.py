"""`SendQueue`: the send queue of one peer, bounded in bytes.

Messages in the queue are not encrypted until the socket can send more bytes. So all queues share one copy of a block,
and the messages of a closed connection are never encrypted.
"""

from __future__ import annotations

from collections import deque
from typing import Final

SOFT_LIMIT: Final = 2 * 1024 * 1024
"""Queued bytes above which gossip is dropped."""
HARD_LIMIT: Final = 16 * 1024 * 1024
"""Queued bytes above which a slow reader is disconnected. A queue with one single message may exceed this limit."""
BATCH: Final = 128 * 1024
"""Number of bytes that are encrypted per write."""
_OVERHEAD: Final = 64
"""Bytes counted per message in addition to its payload, so that empty messages count too."""


class SendQueue:
    """FIFO queue of messages to one peer."""

    __slots__ = ("_messages", "size")

    def __init__(self) -> None:
        self._messages: deque[tuple[int, bytes]] = deque()
        self.size = 0
        """Number of bytes of the queued messages."""

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message_id: int, payload: bytes) -> None:
        """Add a message at the end of the queue."""
        self._messages.append((message_id, payload))
        self.size += len(payload) + _OVERHEAD

    def take(self) -> list[tuple[int, bytes]]:
        """Remove and return the next batch of messages: at least one message, unless the queue is empty."""
        messages, batch, size = self._messages, [], 0
        while messages and size < BATCH:
            message = messages.popleft()
            batch.append(message)
            size += len(message[1]) + _OVERHEAD
        self.size -= size
        return batch

    def clear(self) -> None:
        """Drop all queued messages."""
        self._messages.clear()
        self.size = 0
