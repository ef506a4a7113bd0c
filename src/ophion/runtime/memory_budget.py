"""One budget over all bytes that clients make this node hold, and who goes when there are too many.

Half-read requests, messages that have not ended, requests at work, answers that wait for their turn or for a client
that does not read: whatever a connection makes the node keep is noted here under the connection, as one number. Each
has limits of its own, but some thousands of clients within their limits would hold more memory than there is. All
together they may hold so much. Beyond that somebody goes: those without a good token before those with one, those who
hold much before those who hold little, and among equals the one that has held it longest. So a client that asks for
something usual and takes its answer is served while others fill the budget over and over again.

What one connection does for itself: it stops reading from a client that takes no answers and ends it after
`write_timeout_s`; notifications beyond the share of a WebSocket client (websocket/policy.py) end it at once; a streamed
answer waits (streaming.py).
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

logger = logging.getLogger(__name__)

MAX_BYTES: Final = 192 * 1024 * 1024
LITTLE: Final = 64 * 1024
"""Whoever holds no more than this goes last."""
WORTH_NOTING: Final = 4 * 1024
"""What a connection holds below this is not worth the trouble: there are limits on connections too."""


class Holder(Protocol):
    """A connection for whose client something is kept."""

    def cut_off(self) -> None:
        """Let go of it; the connection need not go on."""


class Budget:
    """What the clients of all services of a node hold together."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._most = max_bytes
        # in the order in which they would have to go: much without a token, much with one, little without, little with
        self._classes: tuple[dict[Holder, int], ...] = ({}, {}, {}, {})
        self._place: dict[Holder, dict[Holder, int]] = {}
        self.held = 0
        """Bytes of all of them."""
        self.cut_off = 0
        """Connections that had to go so far."""

    def weigh(self, holder: Holder, size: int, is_trusted: bool = True) -> bool:
        """What a connection holds has changed: noted where it is worth it, and settled where it no longer is. Whether
        something of it is noted now."""
        if size > WORTH_NOTING:
            self.note(holder, size, is_trusted)
        elif holder in self._place:
            self.settle(holder)
        return size > WORTH_NOTING

    def note(self, holder: Holder, size: int, is_trusted: bool = True) -> None:
        """A connection holds so many bytes now. Somebody may have to go for it, this one only if nobody else can."""
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
                logger.warning("client cut off: clients hold too much together so_far=%d", self.cut_off)
            victim.cut_off()
            if victim is holder:
                return

    def settle(self, holder: Holder) -> None:
        """A connection holds nothing any more, or is gone; saying so twice does no harm."""
        place = self._place.pop(holder, None)
        if place is not None:
            self.held -= place.pop(holder)

    def _first_but(self, holder: Holder) -> Holder:
        for place in self._classes:
            for one in place:
                if one is not holder:
                    return one
        return holder
