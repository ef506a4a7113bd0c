"""`Outbox`: ids of unacknowledged payloads and groups, stored on disk until the recipient reconnects."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ophion.enclave.payload_exchange import RecordLabel
from ophion.enclave.store_writer import OUTBOX, Change, number_of, numbered
from ophion.native.store import Store

MAX_WAITING: Final = 1_000_000
"""Maximum number of outbox rows per recipient: enough for weeks offline, about 200 MB with payloads."""
_PAGE: Final = 10_000


class Outbox:
    """Ids of unacknowledged payloads and groups by recipient, oldest first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.waiting: Counter[bytes] = Counter()
        """Number of outbox rows by recipient."""
        self._number = 0
        after = b""
        while rows := store.rows(OUTBOX, b"", after, _PAGE):
            for key, _ in rows:
                self.waiting[key[:-8]] += 1
                self._number = max(self._number, number_of(key))
            after = rows[-1][0]

    def is_full(self, recipient: bytes) -> bool:
        """Whether a recipient has reached the limit of outbox rows."""
        return self.waiting[recipient] >= MAX_WAITING

    def put(self, recipient: bytes, label: RecordLabel) -> Change:
        """Return the database row that stores the id of a payload or group for a recipient."""
        self._number += 1
        self.waiting[recipient] += 1
        return (OUTBOX, numbered(recipient, self._number), label.encode())

    def page(self, recipient: bytes, limit: int) -> list[tuple[bytes, RecordLabel]]:
        """Return the keys and ids of the oldest outbox rows of a recipient, at most `limit`."""
        return [(key, RecordLabel.decode(value)) for key, value in self._store.rows(OUTBOX, recipient, b"", limit)]

    def take(self, recipient: bytes, key: bytes) -> Change:
        """Return the database change that removes an outbox row. Callers remove a row after the recipient has
        acknowledged or refused the payload.
        """
        self.waiting[recipient] -= 1
        if self.waiting[recipient] <= 0:
            del self.waiting[recipient]
        return (OUTBOX, key, None)
