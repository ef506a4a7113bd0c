"""What one client may keep at this node beyond its requests, and what all of them may: so many things, so many bytes.

A client is who it says it is where tokens are asked for, and a machine elsewhere (`Caller.client`). Without a share for
each, one of them could take all places there are, or fill the memory with what it keeps in them.
"""

from __future__ import annotations

from typing import Final

MEBIBYTE: Final = 2**20


class ClientQuotas:
    """Who keeps how much of one kind of thing."""

    def __init__(self, most: int, most_of_one: int, max_bytes: int, most_bytes_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._max_bytes = max_bytes
        self._most_bytes_of_one = most_bytes_of_one
        self._kept: dict[str, tuple[int, int]] = {}
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        """Clients that keep something."""
        return len(self._kept)

    def has_room(self, size: int) -> bool:
        """Whether one more thing of this size fits into what all may keep."""
        return self._count < self._most and self._bytes + size <= self._max_bytes

    def has_room_for(self, client: str, size: int) -> bool:
        """Whether it fits into what this client may keep."""
        count, held = self._kept.get(client, (0, 0))
        return count < self._most_of_one and held + size <= self._most_bytes_of_one

    def keep(self, client: str, size: int) -> None:
        """One thing more."""
        count, held = self._kept.get(client, (0, 0))
        self._kept[client] = (count + 1, held + size)
        self._count += 1
        self._bytes += size

    def drop(self, client: str, size: int) -> None:
        """One thing less."""
        count, held = self._kept[client]
        if count == 1:
            del self._kept[client]
        else:
            self._kept[client] = (count - 1, held - size)
        self._count -= 1
        self._bytes -= size
