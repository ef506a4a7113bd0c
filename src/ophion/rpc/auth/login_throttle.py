"""Login throttle: delays further logins after repeated failures.

The throttle counts login attempts per pair of client address and user name. After `FREE` attempts without a success the
pair must wait, and each further attempt doubles the wait. The wait does not affect the same user at another address, or
other users at the same address. A login counts when it starts, so that parallel attempts do not avoid the wait.

Queued logins (login.py) are ordered: pairs that have logged in before come first, then addresses with few attempts
under any name.

The number of records is bounded, and old records are evicted. To evict its own record, an attacker would need more
attempts than one thread can hash in minutes.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

FREE: Final = 10
"""Number of login attempts without a wait, per address and user name. Allows for typing errors and parallel logins."""
LONGEST_S: Final = 64.0
_EXPIRY_S: Final = 900.0
"""Seconds without attempts after which a record expires."""
_MAX_RECORDS: Final = 8192
_MAX_NAME_LENGTH: Final = 64
"""Number of leading characters of a user name that are compared."""

_Key: TypeAlias = tuple[str, str | None]


class _Record(Struct):
    """The login attempts with one pair of address and user name, or from one address under any name (name None)."""

    count: int
    """Number of login attempts since the last success."""
    last_s: float
    is_known: bool = False
    """Whether a login with this address and user name has ever succeeded."""


class LoginThrottle:
    """Counts the login attempts at one service."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._records: dict[_Key, _Record] = {}

    def __len__(self) -> int:
        """Number of stored records of login attempts."""
        return len(self._records)

    def pause_s(self, address: str, name: str) -> float:
        """Return the seconds until the next login attempt with this address and user name is allowed; 0 if no wait is
        due.
        """
        record = self._recent(_pair(address, name))
        if record is None or record.count < FREE:
            return 0.0
        wait_s = min(2.0 ** (record.count - FREE), LONGEST_S)
        return max(0.0, record.last_s + wait_s - self._monotonic())

    def rank(self, address: str, name: str) -> int:
        """Return the priority of a login in the queue; a lower number is checked sooner."""
        pair, network = self._recent(_pair(address, name)), self._recent((_network(address), None))
        if pair is not None and pair.is_known:
            return -1
        return 0 if network is None else network.count

    def record_attempt(self, address: str, name: str) -> None:
        """Count a login attempt when it starts."""
        for key in (_pair(address, name), (_network(address), None)):
            record = self._recent(key) or _Record(0, 0.0)
            record.count += 1
            self._store(key, record)

    def succeeded(self, address: str, name: str) -> None:
        """After a successful login, reset the count of this address and user name, and subtract it from the count of
        the address's network.
        """
        pair, network = _pair(address, name), (_network(address), None)
        record = self._recent(network)
        if record is not None:
            record.count = max(0, record.count - self._count(pair))
        self._store(pair, _Record(0, 0.0, True))

    def _count(self, key: _Key) -> int:
        record = self._recent(key)
        return 0 if record is None else record.count

    def _recent(self, key: _Key) -> _Record | None:
        record = self._records.get(key)
        return None if record is None or self._monotonic() - record.last_s > _EXPIRY_S else record

    def _store(self, key: _Key, record: _Record) -> None:
        """Store a record as the newest record. If there are too many records, evict the oldest."""
        self._records.pop(key, None)
        if len(self._records) >= _MAX_RECORDS:
            del self._records[next(iter(self._records))]
        record.last_s = self._monotonic()
        self._records[key] = record


def _pair(address: str, name: str) -> _Key:
    return _network(address), name[:_MAX_NAME_LENGTH]


def _network(address: str) -> str:
    """Return the key under which attempts are counted: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    inner = found.ipv4_mapped
    return str(inner) if inner is not None else str(ipaddress.ip_network((int(found), 64), strict=False))
