"""Filters messages before the state machine: duplicates, later heights and their limits (consensus.md 2.8).

All limits come from the genesis file and bound memory. The state machine holds at most as many messages as the limits
allow, plus a few per validator.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from ophion.consensus.bft.events import MessageReceived


class MessageLimits(Struct, frozen=True):
    """The message limits of the genesis file. The file spells one limit `duplicateMesageLimit`."""

    message_queue: int = 1000
    """Limit of events that wait for the state machine. The driver owns the queue and drops the excess."""
    duplicates: int = 100
    """Limit of messages remembered to detect duplicates."""
    future_messages: int = 1000
    """Limit of stored messages of later heights. 0 stores none."""
    future_distance: int = 10
    """Maximum distance of such messages from the current height."""
    gossiped_history: int = 1000
    """Limit of remembered relayed messages. Each message is relayed once."""


class MessageCounts(Struct):
    """Counts of received messages since the start."""

    received: int = 0
    """Decoded messages, whether accepted or not."""
    malformed: int = 0
    """Messages that are malformed or have no valid signature."""
    dropped: int = 0
    """Messages dropped without decoding because the queue was full."""
    duplicate: int = 0
    stale: int = 0
    """Messages of decided heights."""
    early: int = 0
    """Messages of later heights."""
    too_early: int = 0
    """Messages of later heights that were dropped because they were too far ahead or too many."""
    foreign: int = 0
    """Messages whose author is not a validator."""
    own: int = 0
    """Messages signed with the key of this node."""


class RecentlySeen:
    """The last `limit` fingerprints of messages. A new fingerprint evicts the oldest."""

    __slots__ = ("_limit", "_seen")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def add(self, fingerprint: bytes) -> bool:
        """Record a fingerprint. Returns whether it was new."""
        if fingerprint in self._seen:
            return False
        self._seen[fingerprint] = None
        if len(self._seen) > self._limit:
            self._seen.popitem(last=False)
        return True

    def discard(self, fingerprint: bytes) -> None:
        """Remove a fingerprint, so that the next message with it counts as new."""
        self._seen.pop(fingerprint, None)

    def __contains__(self, fingerprint: object) -> bool:
        return fingerprint in self._seen

    def __len__(self) -> int:
        return len(self._seen)


MAX_FUTURE_BYTES: Final = 64 * 1024 * 1024
"""Limit of stored messages of later heights, in bytes. The genesis file limits only their number."""


class FutureMessages:
    """Stores messages of later heights until their height begins."""

    __slots__ = ("_by_height", "_bytes", "_count", "_limit", "_max_bytes", "_max_distance")

    def __init__(self, limit: int, max_distance: int, max_bytes: int = MAX_FUTURE_BYTES) -> None:
        self._limit = limit
        self._max_distance = max_distance
        self._max_bytes = max_bytes
        self._by_height: dict[int, list[MessageReceived]] = {}
        self._count = 0
        self._bytes = 0

    def add(self, received: MessageReceived, current_height: int) -> bool:
        """Store a message of a later height. Returns whether it was stored.

        Over a limit, messages of the highest height are dropped, because they are needed last. If only one height is
        stored, its oldest messages are dropped.
        """
        height = received.message.height
        if self._limit == 0 or not current_height < height <= current_height + self._max_distance:
            return False
        self._by_height.setdefault(height, []).append(received)
        self._count += 1
        self._bytes += _size(received)
        while self._count > self._limit or self._bytes > self._max_bytes:
            highest = max(self._by_height)
            if len(self._by_height) > 1:
                self._give_up(highest)
                if height == highest:
                    return False
                continue
            oldest = self._by_height[highest].pop(0)
            self._count -= 1
            self._bytes -= _size(oldest)
            if oldest is received:
                return False
        return True

    def take(self, height: int) -> list[MessageReceived]:
        """Return the messages of a height in order of arrival. Drops messages of lower heights."""
        for lower in [number for number in self._by_height if number < height]:
            self._give_up(lower)
        return self._give_up(height)

    def _give_up(self, height: int) -> list[MessageReceived]:
        taken = self._by_height.pop(height, [])
        self._count -= len(taken)
        self._bytes -= sum(map(_size, taken))
        return taken

    def __len__(self) -> int:
        return self._count


def _size(received: MessageReceived) -> int:
    return len(received.message.raw.data)
