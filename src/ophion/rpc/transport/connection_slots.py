"""Places for connections: a limited number, and the idlest gives way to a newcomer.

A service that simply refused newcomers could be closed to everybody by a few thousand connections that ask for nothing.
Here those are the first to go, after those who have asked without being let in. A client that waits for an answer is
never sent away; when all do, the newcomer is told that there is no place (HTTP 503).
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

logger = logging.getLogger(__name__)

NEVER_ASKED: Final = 1e9
"""Idleness of a connection that has not asked for anything yet."""
NOT_LET_IN: Final = 2e9
"""That of one that has asked for something and could not show who it is: a newcomer at least may still do so."""
BUSY: Final = -1.0
"""Idleness of a connection that waits for this node."""
_SHARE: Final = 8
"""How many victims are chosen at a time: one in so many. Looking at all connections is not for every newcomer."""


class SlotHolder(Protocol):
    """A connection, as far as its place is concerned."""

    def idleness(self) -> float:
        """Seconds without anything to do; `BUSY` and `NEVER_ASKED` are the ends."""

    def give_way(self) -> None:
        """Somebody else takes the place."""


GuestT = TypeVar("GuestT", bound=SlotHolder)


class ConnectionSlots(Generic[GuestT]):
    """The connections of one service."""

    def __init__(self, service: str, most: int) -> None:
        self._service = service
        self._most = most
        self._guests: dict[GuestT, None] = {}
        self._victims: list[tuple[float, GuestT]] = []
        self.sent_away = 0
        """Connections that had to give way so far."""
        self.refused = 0
        """Newcomers that found no place so far."""

    def __len__(self) -> int:
        return len(self._guests)

    def __contains__(self, guest: GuestT) -> bool:
        return guest in self._guests

    def __iter__(self) -> Iterator[GuestT]:
        """The connections of this moment; they may leave meanwhile."""
        return iter(tuple(self._guests))

    def admit(self, guest: GuestT) -> bool:
        """Whether there is a place for a newcomer, if need be that of the idlest."""
        if len(self._guests) >= self._most:
            victim = self._idlest()
            if victim is None:
                self.refused += 1
                _warn("connection refused", self._service, self._most, self.refused)
                return False
            self.sent_away += 1
            _warn("idle connection closed for a new one", self._service, self._most, self.sent_away)
            self.leave(victim)
            victim.give_way()
        self._guests[guest] = None
        return True

    def leave(self, guest: GuestT) -> None:
        """The connection is closed; saying so twice does no harm."""
        self._guests.pop(guest, None)

    def _idlest(self) -> GuestT | None:
        for _ in range(2):
            while self._victims:
                seen, victim = self._victims.pop()
                if victim in self._guests and victim.idleness() >= seen:
                    return victim
            count = len(self._guests) // _SHARE + 1
            scored = [(score, guest) for guest in self._guests if (score := guest.idleness()) > BUSY]
            # the oldest first among equals, as `nlargest` keeps the order
            self._victims = heapq.nlargest(count, scored, key=lambda pair: pair[0])[::-1]
        return None


def _warn(what: str, service: str, most: int, count: int) -> None:
    """One line for the first, the second, the fourth, ...: a flood must not fill the log too."""
    if count & (count - 1) == 0:
        logger.warning("%s service=%s limit=%d so_far=%d", what, service, most, count)
