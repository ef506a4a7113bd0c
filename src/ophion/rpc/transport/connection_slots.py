"""Connection limit of a service: a new connection evicts the idlest connection.

If the service refused new connections instead, a few thousand idle connections could block it. Connections without a
valid token are evicted first, then connections that have sent no request. A client that waits for an answer is never
evicted. If all clients wait for answers, the new connection is refused (HTTP 503).
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar

logger = logging.getLogger(__name__)

WITHOUT_REQUEST: Final = 1e9
"""Idleness value of a connection that has sent no request yet. A higher value is evicted first."""
UNAUTHENTICATED: Final = 2e9
"""Idleness value of a connection whose requests all lacked a valid token. A higher value is evicted first."""
BUSY: Final = -1.0
"""Idleness value of a connection that waits for an answer from this node. Such a connection is never evicted."""
_EVICTION_FRACTION: Final = 8
"""Divisor: one scan selects an eighth of all connections for the next evictions, because a scan for each new connection
would be too slow.
"""


class SlotHolder(Protocol):
    """A connection that holds a connection slot."""

    def idleness(self) -> float:
        """Return the seconds without a request, or a constant: `BUSY`, `WITHOUT_REQUEST` or `UNAUTHENTICATED`."""

    def evict(self) -> None:
        """Close this connection, because a new connection needs the slot."""


HolderT = TypeVar("HolderT", bound=SlotHolder)


class ConnectionSlots(Generic[HolderT]):
    """The connections of one service that hold a slot."""

    def __init__(self, service: str, most: int) -> None:
        self._service = service
        self._limit = most
        self._holders: dict[HolderT, None] = {}
        self._victims: list[tuple[float, HolderT]] = []
        self.evicted = 0
        """Number of connections evicted so far."""
        self.refused = 0
        """Number of new connections refused so far."""
        self.on_leave: Callable[[], None] | None = None
        """Called when a slot becomes free."""
        self.elsewhere = 0
        """Number of open connections in other processes that share the port."""

    def __len__(self) -> int:
        return len(self._holders)

    def __contains__(self, holder: HolderT) -> bool:
        return holder in self._holders

    def __iter__(self) -> Iterator[HolderT]:
        """Iterate over a copy, because connections may close during the iteration."""
        return iter(tuple(self._holders))

    def admit(self, holder: HolderT) -> bool:
        """Give a slot to a new connection; evict the idlest connection if needed. Returns False if all connections are
        busy.
        """
        if len(self._holders) >= self._limit:
            victim = self._next_victim()
            if victim is None:
                self.refused += 1
                _warn("connection refused", self._service, self._limit, self.refused)
                return False
            self.evicted += 1
            _warn("idle connection evicted", self._service, self._limit, self.evicted)
            self.leave(victim)
            victim.evict()
        self._holders[holder] = None
        return True

    def leave(self, holder: HolderT) -> None:
        """Free the slot of a closed connection; may be called twice."""
        self._holders.pop(holder, None)
        if self.on_leave is not None:
            self.on_leave()

    def _next_victim(self) -> HolderT | None:
        for _ in range(2):
            while self._victims:
                seen, victim = self._victims.pop()
                if victim in self._holders and victim.idleness() >= seen:
                    return victim
            count = len(self._holders) // _EVICTION_FRACTION + 1
            scored = [(score, holder) for holder in self._holders if (score := holder.idleness()) > BUSY]
            # `nlargest` is stable, so among equally idle connections the oldest is evicted first
            self._victims = heapq.nlargest(count, scored, key=lambda pair: pair[0])[::-1]
        return None


def _warn(what: str, service: str, most: int, count: int) -> None:
    """Log only the first, second, fourth, eighth, … event, so that a flood does not fill the log."""
    if count & (count - 1) == 0:
        logger.warning("%s service=%s limit=%d so_far=%d", what, service, most, count)
