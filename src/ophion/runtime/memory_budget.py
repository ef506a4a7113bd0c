"""Limits the memory that all clients together make the node hold, and evicts clients above the limit.

Each connection reports the bytes of its incomplete and running requests, and of replies that wait for the scheduler or
for a slow reader. Each connection has limits of its own, but thousands of connections within these limits would exceed
the memory. Above the budget, the node first disconnects clients with large amounts. Among these, clients without a
valid token go first, oldest first. Clients with ordinary requests are served meanwhile.

Other limits protect against slow readers. A connection reads no more requests while the client reads no replies, and
closes after `write_timeout_s`. A WebSocket client with too many queued notifications is disconnected
(websocket/policy.py). A streamed reply waits (streaming.py).
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

logger = logging.getLogger(__name__)

MAX_BYTES: Final = 192 * 1024 * 1024
LITTLE: Final = 64 * 1024
"""Connections that hold at most this many bytes are evicted last."""
WORTH_NOTING: Final = 4 * 1024
"""A connection that holds more bytes than this is recorded. Connection limits bound smaller amounts."""


class MemoryHolder(Protocol):
    """A connection that holds memory for its client."""

    def cut_off(self) -> None:
        """Release the held memory, for example by closing the connection."""


class MemoryBudget:
    """Counts the bytes held for the clients of all services of a node."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._most = max_bytes
        # Four groups, in eviction order. First the connections with much memory: without a token, then with a token.
        # Then the connections with little memory, in the same order.
        self._classes: tuple[dict[MemoryHolder, int], ...] = ({}, {}, {}, {})
        self._place: dict[MemoryHolder, dict[MemoryHolder, int]] = {}
        self.held = 0
        """Bytes that all connections hold."""
        self.cut_off = 0
        """Number of connections evicted so far."""

    def report_memory(self, holder: MemoryHolder, size: int, is_trusted: bool = True) -> bool:
        """Record the bytes of a connection if `size` exceeds `WORTH_NOTING`, otherwise remove its record. Returns
        whether `size` exceeds this threshold.
        """
        if size > WORTH_NOTING:
            self.record(holder, size, is_trusted)
        elif holder in self._place:
            self.settle(holder)
        return size > WORTH_NOTING

    def record(self, holder: MemoryHolder, size: int, is_trusted: bool = True) -> None:
        """Record the bytes that a connection holds now. Above the budget, evicts other connections first, this
        connection last.
        """
        place = self._classes[(2 if size <= LITTLE else 0) + is_trusted]
        before = self._place.get(holder)
        if before is not None:
            self.held -= before[holder]
            if before is not place:
                del before[holder]
        self.held += size
        place[holder] = size
        self._place[holder] = place
        while self.held > self._most:
            victim = self._first_but(holder)
            self.settle(victim)
            self.cut_off += 1
            if self.cut_off & (self.cut_off - 1) == 0:
                logger.warning("client disconnected reason=memory-budget total=%d", self.cut_off)
            victim.cut_off()
            if victim is holder:
                return

    def settle(self, holder: MemoryHolder) -> None:
        """Release all bytes of a connection; may be called twice."""
        place = self._place.pop(holder, None)
        if place is not None:
            self.held -= place.pop(holder)

    def _first_but(self, holder: MemoryHolder) -> MemoryHolder:
        for place in self._classes:
            for one in place:
                if one is not holder:
                    return one
        return holder
