"""Sends finished replies piece by piece, because compressing or encrypting each piece takes time.

Encryption runs on the event loop and takes more than 100 ms for the longest reply. So a long reply on an encrypted
connection is sent in portions. The next portion is encrypted when the client has read the previous portion and the
`FairScheduler` grants time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

from ophion.runtime.fair_scheduler import FairScheduler

Piece: TypeAlias = bytes | memoryview
"""A part of a reply. It is a memoryview if a copy would be expensive."""

PORTION_BYTES: Final = 64 * 1024
"""Bytes that are encrypted in one step: four TLS records."""
_PORTION_S: Final = 100e-6
"""Duration of one encryption step in seconds, including copies."""
_RANK: Final = 1.0
"""Scheduling rank of a long reply, which comes after ordinary requests (`LoopShare.rank`)."""
_PIECE_BYTES: Final = 128 * 1024
"""Bytes that are compressed in one step, which takes about a millisecond."""


class ReplyPieces:
    """A finished reply, returned piece by piece. Each piece is released once it is returned."""

    def __init__(self, parts: Sequence[Piece], piece_bytes: int = _PIECE_BYTES) -> None:
        self._parts = deque(parts)
        self._piece_bytes = piece_bytes
        self.weight = sum(map(len, parts))
        """Bytes that `next` has not returned yet."""

    async def next(self) -> bytes | None:
        """Return the next piece; None after the last piece. Joins small parts and cuts large parts."""
        found: list[Piece] = []
        remaining = self._piece_bytes
        while self._parts and remaining:
            part = self._parts.popleft()
            if len(part) > remaining:
                view = memoryview(part)
                self._parts.appendleft(view[remaining:])
                part = view[:remaining]
            found.append(part)
            remaining -= len(part)
        self.weight -= self._piece_bytes - remaining
        return b"".join(found) or None

    def close(self) -> None:
        """Drop the remaining pieces."""
        self._parts.clear()
        self.weight = 0


class EncryptedReplyPieces:
    """A reply for an encrypted connection, in portions."""

    first = b""

    def __init__(self, parts: Sequence[Piece], scheduler: FairScheduler) -> None:
        self._whole = ReplyPieces(parts, PORTION_BYTES)
        self._scheduler = scheduler
        self._turn: asyncio.Future[None] | None = None

    @property
    def weight(self) -> int:
        """Return the number of bytes that are not encrypted yet."""
        return self._whole.weight

    async def next(self) -> bytes | None:
        """Return the next piece when the scheduler grants time; None after the last piece."""
        if self._scheduler.is_over:
            self._turn = asyncio.get_running_loop().create_future()
            self._scheduler.wait(self, _RANK)
            await self._turn
        else:
            self._scheduler.spend(_PORTION_S)
        return await self._whole.next()

    def work(self) -> None:
        """Let the waiting `next` continue; called by the scheduler. The client may have disconnected meanwhile."""
        if self._turn is not None and not self._turn.done():
            self._scheduler.spend(_PORTION_S)
            self._turn.set_result(None)

    def close(self) -> None:
        """Drop the remaining portions."""
        self._whole.close()
