"""`PendingLimit`: limits on inbound connections before the handshake (networking.md 5.1).

Pending connections are cheap to open and cost this node a socket each, so their number is bounded. Above the limit, the
node evicts the oldest pending connection of the address with the most pending connections. Honest peers finish the
handshake in a fraction of a second, so mostly the flood itself is evicted. Connections from the addresses of static
peers are evicted last. An address that holds nearly all slots loses this protection, because other nodes may share the
address.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from ophion.peers.policy.addresses import Subnet, is_public, is_within

MAX_PENDING: Final = 50
_MAX_KNOWN: Final = 40
"""Limit of pending connections from a static peer's address that are protected from eviction."""
_MIN_INTERVAL_S: Final = 30.0
_MAX_ADDRESSES: Final = 4096

T = TypeVar("T")


class PendingLimit(Generic[T]):
    """Inbound connections that are not peers yet, at most `max_pending`."""

    __slots__ = ("_last_seen", "_max_pending", "_pending", "_subnets", "refused")

    def __init__(self, subnets: Sequence[Subnet] = (), max_pending: int = MAX_PENDING) -> None:
        self._subnets = subnets
        self._max_pending = max_pending
        self._pending: OrderedDict[T, tuple[str, bool]] = OrderedDict()
        """Pending connections, oldest first: the address, and whether a static peer has this address."""
        self._last_seen: OrderedDict[str, float] = OrderedDict()
        self.refused = 0
        """Number of connections refused or evicted so far."""

    def __len__(self) -> int:
        return len(self._pending)

    def waiting(self, ip: str) -> int:
        """Number of pending connections from this address."""
        return sum(other == ip for other, _ in self._pending.values())

    def admits(self, ip: str, now: float, *, is_known: bool) -> bool:
        """Record an attempt to connect. Returns whether `--net-restrict` and the unknown-node rate limit allow it."""
        is_admitted = is_within(ip, self._subnets) and (is_known or self._is_within_rate(ip, now))
        self.refused += not is_admitted
        return is_admitted

    def enter(self, connection: T, ip: str, *, is_known: bool) -> T | None:
        """Add a connection. Above the limit, removes a connection and returns it, so that the caller closes it."""
        self._pending[connection] = (ip, is_known)
        if len(self._pending) <= self._max_pending:
            return None
        self.refused += 1
        counts = Counter(self._pending.values())

        def priority(one: T) -> tuple[bool, int]:
            address = self._pending[one]
            return not address[1] or counts[address] > _MAX_KNOWN, counts[address]

        evicted = max(self._pending, key=priority)
        del self._pending[evicted]
        return evicted

    def leave(self, connection: T) -> None:
        """Remove a connection that became a peer or closed."""
        self._pending.pop(connection, None)

    def _is_within_rate(self, ip: str, now: float) -> bool:
        """Allow one attempt per 30 seconds from a public address. Private addresses have no limit."""
        if not is_public(ip):
            return True
        last = self._last_seen.get(ip)
        self._last_seen[ip] = now
        self._last_seen.move_to_end(ip)
        while len(self._last_seen) > _MAX_ADDRESSES:
            self._last_seen.popitem(last=False)
        return last is None or now - last >= _MIN_INTERVAL_S
