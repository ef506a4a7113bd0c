"""Quotas on objects that clients create on the node, such as filters: number and bytes, per client and in total.

A client is the user of a token or, without authentication, an IP address (`Caller.client`). Without the limit per
client, one client could use up the total.
"""

from __future__ import annotations

from typing import Final

MEBIBYTE: Final = 2**20


class ClientQuotas:
    """Counts the objects of one kind (such as filters) and their bytes, per client."""

    def __init__(self, max_count: int, max_count_per_client: int, max_bytes: int, max_bytes_per_client: int) -> None:
        self._max_count = max_count
        self._max_count_per_client = max_count_per_client
        self._max_bytes = max_bytes
        self._max_bytes_per_client = max_bytes_per_client
        self._usage: dict[str, tuple[int, int]] = {}
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        """Return the number of clients that have objects."""
        return len(self._usage)

    def fits_total(self, size: int) -> bool:
        """Return whether one more object of this size fits into the total limit."""
        return self._count < self._max_count and self._bytes + size <= self._max_bytes

    def fits_client(self, client: str, size: int) -> bool:
        """Return whether one more object of this size fits into the limit of this client."""
        count, held = self._usage.get(client, (0, 0))
        return count < self._max_count_per_client and held + size <= self._max_bytes_per_client

    def keep(self, client: str, size: int) -> None:
        """Count an object that a client has created."""
        count, held = self._usage.get(client, (0, 0))
        self._usage[client] = (count + 1, held + size)
        self._count += 1
        self._bytes += size

    def drop(self, client: str, size: int) -> None:
        """Stop counting an object of a client, because the object is removed."""
        count, held = self._usage[client]
        if count == 1:
            del self._usage[client]
        else:
            self._usage[client] = (count - 1, held - size)
        self._count -= 1
        self._bytes -= size
