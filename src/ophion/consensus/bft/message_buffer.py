"""Filters messages before the state machine: duplicates, later heights and their limits (consensus.md 2.8).

All limits come from the genesis file and bound the memory. The state machine holds at most as many messages as the
limits allow, plus a few per validator.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from ophion.consensus.bft.events import MessageReceived
from ophion.primitives.types import Address


class MessageLimits(Struct, frozen=True):
    """The message limits of the genesis file. The file spells one limit `duplicateMesageLimit`."""

    message_queue: int = 1000
    """Maximum number of events that wait for the state machine. The driver owns the queue and drops further events."""
    duplicates: int = 100
    """Maximum number of messages remembered to detect duplicates."""
    future_messages: int = 1000
    """Maximum number of stored messages of later heights. With 0, no such message is stored."""
    future_distance: int = 10
    """Maximum distance of a stored message's height from the current height."""
    gossiped_history: int = 1000
    """Maximum number of remembered relayed messages. Each message is relayed once."""


class MessageCounts(Struct):
    """Counts of received messages since the start."""

    received: int = 0
    """Number of decoded messages, both accepted and dropped."""
    malformed: int = 0
    """Number of messages that are malformed or have no valid signature."""
    dropped: int = 0
    """Number of messages dropped without decoding because the queue was full."""
    duplicate: int = 0
    stale: int = 0
    """Number of messages of decided heights."""
    early: int = 0
    """Number of messages of later heights."""
    too_early: int = 0
    """Number of messages of later heights that were dropped because they were too far ahead or too many."""
    foreign: int = 0
    """Number of messages whose author is not a validator."""
    own: int = 0
    """Number of messages signed with the key of this node."""


class RecentlySeen:
    """The last `limit` message fingerprints. A new fingerprint evicts the oldest."""

    __slots__ = ("_limit", "_seen")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def add(self, fingerprint: bytes) -> bool:
        """Record a fingerprint. Returns whether the fingerprint was new."""
        if fingerprint in self._seen:
            return False
        self._seen[fingerprint] = None
        if len(self._seen) > self._limit:
            self._seen.popitem(last=False)
        return True

    def resize(self, limit: int) -> None:
        """Set the limit. Evicts the oldest fingerprints above the new limit."""
        self._limit = limit
        while len(self._seen) > limit:
            self._seen.popitem(last=False)

    def discard(self, fingerprint: bytes) -> None:
        """Remove a fingerprint, so that the next message with this fingerprint counts as new."""
        self._seen.pop(fingerprint, None)

    def __contains__(self, fingerprint: object) -> bool:
        return fingerprint in self._seen

    def __len__(self) -> int:
        return len(self._seen)


MAX_FUTURE_BYTES: Final = 64 * 1024 * 1024
"""Maximum total size in bytes of stored messages of later heights. The genesis file limits only their number."""


class _AuthorMessages:
    """Messages of later heights from one author. All authors that are not validators share one object."""

    __slots__ = ("by_height", "bytes", "count")

    def __init__(self) -> None:
        self.by_height: dict[int, list[tuple[int, MessageReceived]]] = {}
        """Messages by height, each with its order of arrival."""
        self.count = 0
        self.bytes = 0

    def add(self, order: int, received: MessageReceived) -> None:
        self.by_height.setdefault(received.message.height, []).append((order, received))
        self.count += 1
        self.bytes += _size(received)

    def take(self, height: int) -> list[tuple[int, MessageReceived]]:
        taken = self.by_height.pop(height, [])
        self.count -= len(taken)
        self.bytes -= sum(_size(received) for _, received in taken)
        return taken

    def drop(self) -> None:
        """Drop the messages of the highest height. If only one height is stored, drop the oldest message."""
        highest = max(self.by_height)
        if len(self.by_height) > 1 or len(self.by_height[highest]) == 1:
            self.take(highest)
            return
        _, oldest = self.by_height[highest].pop(0)
        self.count -= 1
        self.bytes -= _size(oldest)

    def holds(self, received: MessageReceived) -> bool:
        return any(one is received for _, one in self.by_height.get(received.message.height, ()))


class FutureMessages:
    """Messages of later heights, stored until their height begins."""

    __slots__ = ("_arrivals", "_authors", "_limit", "_max_bytes", "_max_distance")

    def __init__(self, limit: int, max_distance: int, max_bytes: int = MAX_FUTURE_BYTES) -> None:
        self._limit = limit
        self._max_distance = max_distance
        self._max_bytes = max_bytes
        self._authors: dict[Address | None, _AuthorMessages] = {}
        self._arrivals = 0

    def add(self, received: MessageReceived, current_height: int, validator: Address | None = None) -> bool:
        """Store a message of a later height. Returns whether the message was stored.

        `validator` is the author, or None if the author is not a validator. When a limit is exceeded, messages of the
        author with the most messages are dropped. So a flood affects only its own author. All authors that are not
        validators count as one author. The messages of the highest height are dropped first, because they are needed
        last. An author with only one height loses its oldest message.
        """
        height = received.message.height
        if self._limit == 0 or not current_height < height <= current_height + self._max_distance:
            return False
        self._arrivals += 1
        self._authors.setdefault(validator, _AuthorMessages()).add(self._arrivals, received)
        is_full = False
        while (is_over := len(self) > self._limit) or self._bytes() > self._max_bytes:
            is_full = True
            self._heaviest(by_count=is_over).drop()
        if not is_full:
            return True
        self._forget_empty()
        author = self._authors.get(validator)
        return author is not None and author.holds(received)

    def take(self, height: int) -> list[MessageReceived]:
        """Return the messages of a height in order of arrival, and drop messages of lower heights."""
        taken: list[tuple[int, MessageReceived]] = []
        for author in self._authors.values():
            for lower in [number for number in author.by_height if number < height]:
                author.take(lower)
            taken += author.take(height)
        self._forget_empty()
        return [received for _, received in sorted(taken, key=lambda one: one[0])]

    def _heaviest(self, by_count: bool) -> _AuthorMessages:
        return max(self._authors.values(), key=lambda author: author.count if by_count else author.bytes)

    def _bytes(self) -> int:
        return sum(author.bytes for author in self._authors.values())

    def _forget_empty(self) -> None:
        self._authors = {name: author for name, author in self._authors.items() if author.count}

    def __len__(self) -> int:
        return sum(author.count for author in self._authors.values())


def _size(received: MessageReceived) -> int:
    return len(received.message.raw.data)
