"""`Quota`: how much of others' payloads is kept that no marker has referred to yet.

A payload costs its sender nothing until a marker on the chain points at it, so what is kept before that is bounded: for
each sender that has had a marker, and for all newcomers together, since anybody can make up keys. What is counted is
counted from the start of the process on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

MAX_BYTES: Final = 256 * 1024 * 1024
MAX_PAYLOADS: Final = 200_000
_COST: Final = MAX_BYTES // MAX_PAYLOADS
"""What a small payload counts at least: rows and indexes are not free."""
MAX_FETCHED_BYTES: Final = 8 * 1024 * 1024 * 1024
"""What a member that lost its payloads gets back in one go."""
_NEWCOMERS: Final = b""


class Quota:
    """Bytes by sender."""

    def __init__(self) -> None:
        self._open: dict[bytes, tuple[bytes, int]] = {}
        """Account and bytes by payload, until a marker is seen."""
        self._kept: Counter[bytes] = Counter()
        self._known: set[bytes] = set()
        self._fetched = 0

    def admits(self, sender: bytes, size: int) -> bool:
        """Whether one more payload of this size is kept."""
        return self._kept[self._account(sender)] + max(size, _COST) <= MAX_BYTES

    def add(self, key: bytes, sender: bytes, size: int) -> None:
        """A payload of another is kept."""
        account, cost = self._account(sender), max(size, _COST)
        self._open[key] = (account, cost)
        self._kept[account] += cost

    def fetch(self, size: int) -> bool:
        """Whether one more payload that was asked for is kept; such ones count until the process ends."""
        if self._fetched + size > MAX_FETCHED_BYTES:
            return False
        self._fetched += size
        return True

    def settle(self, keys: Iterable[bytes], senders: Iterable[bytes]) -> None:
        """Markers point at these payloads, of these senders."""
        for key in keys:
            account, size = self._open.pop(key, (_NEWCOMERS, 0))
            self._kept[account] -= size
        self._known.update(senders)

    def _account(self, sender: bytes) -> bytes:
        return sender if sender in self._known else _NEWCOMERS
