"""What clients have not taken yet, and who is cut off when that is too much.

Each connection is cut off for itself when it takes nothing for a while. That is not enough: some thousands of clients
that ask for much and take nothing would hold more memory than there is, long before their time is up. All together they
may hold so much; beyond that the one that has been behind longest goes.

What one connection does for itself: http/connection.py and websocket/connection.py stop reading requests from a client
that takes no answers and end it after `write_timeout_s`; notifications beyond the share of a WebSocket client
(websocket/policy.py) end it at once; a streamed answer waits (streaming.py).
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

logger = logging.getLogger(__name__)

MAX_BYTES: Final = 256 * 1024 * 1024


class Debtor(Protocol):
    """A connection whose client does not take what was written."""

    def cut_off(self) -> None:
        """End the connection at once."""


class Backlog:
    """The clients of one service that are behind."""

    def __init__(self, most_bytes: int = MAX_BYTES) -> None:
        self._most = most_bytes
        self._sizes: dict[Debtor, int] = {}
        self._total = 0
        self.cut_off = 0
        """Connections that were cut off so far."""

    def note(self, debtor: Debtor, size: int) -> None:
        """A client has left so many bytes untaken; whoever is behind longest may have to go, this one last."""
        self._total += size - self._sizes.get(debtor, 0)
        self._sizes[debtor] = size
        while self._total > self._most and len(self._sizes) > 1:
            victim = next(one for one in self._sizes if one is not debtor)
            self.settle(victim)
            self.cut_off += 1
            if self.cut_off & (self.cut_off - 1) == 0:
                logger.warning("client cut off: it does not take its answers so_far=%d", self.cut_off)
            victim.cut_off()

    def settle(self, debtor: Debtor) -> None:
        """A client has caught up, or is gone."""
        self._total -= self._sizes.pop(debtor, 0)
