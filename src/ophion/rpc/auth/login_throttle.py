"""Who has tried to log in how often: a pause for those who guess, which concerns nobody else.

What is counted belongs to a pair, the machine somebody calls from and the name he gives. After some attempts that led
to nothing the pair has to wait, and each further one makes the wait twice as long. So guessing is slow, whoever guesses
from one machine keeps the owner of the name out of nothing on another, and other users of the same machine do not
notice. An attempt counts from its beginning: many at the same time are not cheaper than one after the other.

How many there were from one machine under all names decides about the order when many want to log in at a time
(login.py): machines that have tried little come first, and before them pairs that have logged in before.

What is remembered is bounded. To make room for itself by other attempts, an attacker would need more of them than a
thread can hash in minutes, and these are the attempts that are limited.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

FREE: Final = 10
"""So many attempts of a pair cost nothing: people mistype, programs start in numbers."""
LONGEST_S: Final = 64.0
_FORGOTTEN_S: Final = 900.0
"""After so much quiet it is as if there had been nothing."""
_MOST: Final = 8192
_LONGEST_NAME: Final = 64
"""Names that begin alike for so long count as one."""

_Key: TypeAlias = tuple[str, str | None]


class _Record(Struct):
    """One pair, or under the name None one machine."""

    count: int
    """Attempts since the last one that led to a token."""
    last_s: float
    is_known: bool = False
    """Whether one ever did."""


class LoginThrottle:
    """The attempts to log in at one door."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._records: dict[_Key, _Record] = {}

    def __len__(self) -> int:
        """How much is remembered."""
        return len(self._records)

    def pause_s(self, address: str, name: str) -> float:
        """For how long somebody has to wait before he may try."""
        record = self._recent(_pair(address, name))
        if record is None or record.count < FREE:
            return 0.0
        wait_s = min(2.0 ** (record.count - FREE), LONGEST_S)
        return max(0.0, record.last_s + wait_s - self._monotonic())

    def rank(self, address: str, name: str) -> int:
        """Where in the order of those who want to log in somebody comes; lower is sooner."""
        pair, machine = self._recent(_pair(address, name)), self._recent((_machine(address), None))
        if pair is not None and pair.is_known:
            return -1
        return 0 if machine is None else machine.count

    def note(self, address: str, name: str) -> None:
        """An attempt begins."""
        for key in (_pair(address, name), (_machine(address), None)):
            record = self._recent(key) or _Record(0, 0.0)
            record.count += 1
            self._keep(key, record)

    def succeeded(self, address: str, name: str) -> None:
        """It has led to a token: nobody was guessing."""
        pair, machine = _pair(address, name), (_machine(address), None)
        record = self._recent(machine)
        if record is not None:
            record.count = max(0, record.count - self._count(pair))
        self._keep(pair, _Record(0, 0.0, True))

    def _count(self, key: _Key) -> int:
        record = self._recent(key)
        return 0 if record is None else record.count

    def _recent(self, key: _Key) -> _Record | None:
        record = self._records.get(key)
        return None if record is None or self._monotonic() - record.last_s > _FORGOTTEN_S else record

    def _keep(self, key: _Key, record: _Record) -> None:
        """Newest last, so that what makes room is what was quiet longest."""
        self._records.pop(key, None)
        if len(self._records) >= _MOST:
            del self._records[next(iter(self._records))]
        record.last_s = self._monotonic()
        self._records[key] = record


def _pair(address: str, name: str) -> _Key:
    return _machine(address), name[:_LONGEST_NAME]


def _machine(address: str) -> str:
    """The part of an address that its owner cannot choose: of IPv6 the network, of which everybody has a whole one."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    inner = found.ipv4_mapped
    return str(inner) if inner is not None else str(ipaddress.ip_network((int(found), 64), strict=False))
