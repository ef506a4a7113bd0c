"""One limit on the bytes that all clients make the node hold, and eviction when it is exceeded.

Each connection reports one number: half-read requests, unfinished messages, running requests, and replies that wait for
the scheduler or for a slow reader. Connections have limits of their own, but thousands of them within these limits
would exceed the memory. Above the budget the node disconnects clients: without a valid token before those with one,
large holders before small ones, and among equals the oldest. A client with ordinary requests is served meanwhile.

Other limits: the connection stops reading from a client that reads no replies and closes it after `write_timeout_s`; a
WebSocket client with too many queued notifications is disconnected (websocket/policy.py); a streamed reply waits
(streaming.py).
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

logger = logging.getLogger(__name__)

MAX_BYTES: Final = 192 * 1024 * 1024
LITTLE: Final = 64 * 1024
"""A connection that holds no more than this is evicted last."""
WORTH_NOTING: Final = 4 * 1024
"""Smaller amounts are not recorded; connection limits bound them."""


class Holder(Protocol):
    """A connection whose client makes the node hold bytes."""

    def cut_off(self) -> None:
        """Release the bytes; the connection may close."""


class Budget:
    """Bytes held for the clients of all services of a node."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._most = max_bytes
        # in order of eviction: large without a token, large with one, small without, small with
        self._classes: tuple[dict[Holder, int], ...] = ({}, {}, {}, {})
        self._place: dict[Holder, dict[Holder, int]] = {}
        self.held = 0
        """Bytes of all connections."""
        self.cut_off = 0
        """Connections evicted so far."""

    def weigh(self, holder: Holder, size: int, is_trusted: bool = True) -> bool:
        """Update what a connection holds: record it above the threshold, release it below; return whether it is
        recorded now."""
        if size > WORTH_NOTING:
            self.note(holder, size, is_trusted)
        elif holder in self._place:
            self.settle(holder)
        return size > WORTH_NOTING

    def note(self, holder: Holder, size: int, is_trusted: bool = True) -> None:
        """Record what a connection holds now. May evict others, and this one only when no other remains."""
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

    def settle(self, holder: Holder) -> None:
        """Release all that a connection holds; safe to repeat."""
        place = self._place.pop(holder, None)
        if place is not None:
            self.held -= place.pop(holder)

    def _first_but(self, holder: Holder) -> Holder:
        for place in self._classes:
            for one in place:
                if one is not holder:
                    return one
        return holder
