"""`MessageIntake`: decodes large consensus messages in a worker thread, and keeps the messages of each peer in order.

A proposal or a round change holds a block of up to ten megabytes. Hashing and decoding such a message takes tens of
milliseconds, so both steps run in a worker thread. Later messages of the same peer wait for the large message. Messages
of other peers do not wait, so a validator that sends large messages delays only itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from ophion.consensus.bft.messages import RawMessage
from ophion.primitives.types import Address

log = logging.getLogger(__name__)

MAX_INLINE_BYTES: Final = 16 * 1024
"""Size in bytes above which a message is decoded in a worker thread."""
MAX_WAITING: Final = 1024
MAX_WAITING_BYTES: Final = 32 * 1024 * 1024
"""Limit in bytes of the waiting messages of one peer: three blocks of the maximum size."""


class _Waiting:
    """Queued messages of one peer, in order of arrival."""

    __slots__ = ("messages", "size")

    def __init__(self) -> None:
        self.messages: deque[RawMessage] = deque()
        self.size = 0


class MessageIntake:
    """Decodes large messages in a worker thread. Further messages of the same peer wait in a queue."""

    def __init__(
        self,
        take: Callable[[RawMessage, Address | None], None],
        take_large: Callable[[RawMessage, Address | None], Awaitable[None]],
    ) -> None:
        """Create the message intake. `take` and `take_large` decode a message and pass it to the state machine."""
        self._take = take
        self._take_large = take_large
        self._waiting: dict[Address | None, _Waiting] = {}

    def __len__(self) -> int:
        """Number of waiting messages of all peers."""
        return sum(len(waiting.messages) for waiting in self._waiting.values())

    def must_wait(self, raw: RawMessage, peer: Address | None) -> bool:
        """Whether a message is large, or must wait for a large message of the same peer."""
        return len(raw.data) > MAX_INLINE_BYTES or peer in self._waiting

    def put(self, raw: RawMessage, peer: Address | None, tasks: asyncio.TaskGroup) -> bool:
        """Queue a message. Returns False when too many messages or bytes of the peer are queued."""
        waiting = self._waiting.get(peer)
        if waiting is None:
            waiting = self._waiting[peer] = _Waiting()
            tasks.create_task(self._work(waiting, peer))
        is_full = len(waiting.messages) >= MAX_WAITING or waiting.size + len(raw.data) > MAX_WAITING_BYTES
        if waiting.messages and is_full:
            return False
        waiting.messages.append(raw)
        waiting.size += len(raw.data)
        return True

    async def _work(self, waiting: _Waiting, peer: Address | None) -> None:
        try:
            while waiting.messages:
                raw = waiting.messages[0]
                try:
                    if len(raw.data) > MAX_INLINE_BYTES:
                        await self._take_large(raw, peer)
                    else:
                        self._take(raw, peer)
                except Exception:
                    # catch every exception, because no message of a peer may stop consensus
                    log.exception("cannot handle consensus message bytes=%d", len(raw.data))
                waiting.messages.popleft()
                waiting.size -= len(raw.data)
        finally:
            if self._waiting.get(peer) is waiting:
                del self._waiting[peer]

    def clear(self) -> None:
        """Drop all messages. Called when consensus and its tasks have stopped."""
        self._waiting.clear()
