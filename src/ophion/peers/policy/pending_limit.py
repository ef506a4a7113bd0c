"""Who may knock: checks before a stranger has shown a key (networking.md 5.1).

Half-open connections are cheap to make and cost a socket each, so their number is bounded. When there are too many, one
of the address that has most of them goes, the one that has waited longest: an honest peer is through the handshake in a
fraction of a second, and whoever floods the door pushes out itself. Addresses of static peers go last, unless one of
them has nearly all places: somebody else may live there too.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from ophion.peers.policy.addresses import Subnet, is_public, is_within

MAX_PENDING: Final = 50
_MAX_KNOWN: Final = 40
"""Of one address where a static peer lives, before it is treated as any other."""
_PAUSE_S: Final = 30.0
_REMEMBERED: Final = 4096

T = TypeVar("T")


class PendingLimit(Generic[T]):
    """Connections that came in and have not said Hello."""

    __slots__ = ("_last_seen", "_max_pending", "_pending", "_subnets", "refused")

    def __init__(self, subnets: Sequence[Subnet] = (), max_pending: int = MAX_PENDING) -> None:
        self._subnets = subnets
        self._max_pending = max_pending
        self._pending: OrderedDict[T, tuple[str, bool]] = OrderedDict()
        """Each with its address, and whether a static peer lives there; in the order of coming."""
        self._last_seen: OrderedDict[str, float] = OrderedDict()
        self.refused = 0
        """How many were sent away."""

    def __len__(self) -> int:
        return len(self._pending)

    def waiting(self, ip: str) -> int:
        """How many from this address are in it."""
        return sum(other == ip for other, _ in self._pending.values())

    def admits(self, ip: str, now: float, *, is_known: bool) -> bool:
        """Whether somebody from this address may try; an address of a static peer is always welcome to."""
        is_welcome = is_within(ip, self._subnets) and (is_known or self._is_patient(ip, now))
        self.refused += not is_welcome
        return is_welcome

    def enter(self, connection: T, ip: str, *, is_known: bool) -> T | None:
        """Take one in; returns the one that has to go for it."""
        self._pending[connection] = (ip, is_known)
        if len(self._pending) <= self._max_pending:
            return None
        self.refused += 1
        crowd = Counter(self._pending.values())

        def claim(one: T) -> tuple[bool, int]:
            place = self._pending[one]
            return not place[1] or crowd[place] > _MAX_KNOWN, crowd[place]

        evicted = max(self._pending, key=claim)
        del self._pending[evicted]
        return evicted

    def leave(self, connection: T) -> None:
        """It said Hello, or it is gone."""
        self._pending.pop(connection, None)

    def _is_patient(self, ip: str, now: float) -> bool:
        """One attempt in so many seconds from a public address; as many as they like from our own networks."""
        if not is_public(ip):
            return True
        last = self._last_seen.get(ip)
        self._last_seen[ip] = now
        self._last_seen.move_to_end(ip)
        while len(self._last_seen) > _REMEMBERED:
            self._last_seen.popitem(last=False)
        return last is None or now - last >= _PAUSE_S
