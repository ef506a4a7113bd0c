"""Finished replies sent piece by piece, because each piece costs work: compression or encryption.

Encryption runs on the event loop: more than 100 ms for the longest reply. A long reply on an encrypted connection
therefore leaves in portions. The next portion is encrypted when the client has read the previous one and the scheduler
(`FairScheduler`) grants time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

from ophion.runtime.fair_scheduler import FairScheduler

Piece: TypeAlias = bytes | memoryview
"""A part of a reply; a memoryview where a copy would be expensive."""

PORTION_BYTES: Final = 64 * 1024
"""Bytes encrypted in one step: four TLS records."""
_PORTION_S: Final = 100e-6
"""Cost of that step in seconds, copies included."""
_RANK: Final = 1.0
"""Rank behind ordinary requests (`Share.rank`)."""
_PIECE_BYTES: Final = 128 * 1024
"""Bytes compressed in one step: about a millisecond of work."""


class Whole:
    """A finished reply in pieces; releases each piece when it is handed out."""

    def __init__(self, parts: Sequence[Piece], piece_bytes: int = _PIECE_BYTES) -> None:
        self._parts = deque(parts)
        self._piece_bytes = piece_bytes
        self.weight = sum(map(len, parts))
        """Bytes not handed out yet."""

    async def next(self) -> bytes | None:
        """Joins small parts and cuts large ones."""
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
        """Drop the rest."""
        self._parts.clear()
        self.weight = 0


class Portions:
    """A reply for an encrypted connection."""

    first = b""

    def __init__(self, parts: Sequence[Piece], scheduler: FairScheduler) -> None:
        self._whole = Whole(parts, PORTION_BYTES)
        self._scheduler = scheduler
        self._turn: asyncio.Future[None] | None = None

    @property
    def weight(self) -> int:
        """Bytes not encrypted yet."""
        return self._whole.weight

    async def next(self) -> bytes | None:
        """Return the next piece when the scheduler grants time; None after the last."""
        if self._scheduler.is_over:
            self._turn = asyncio.get_running_loop().create_future()
            self._scheduler.wait(self, _RANK)
            await self._turn
        else:
            self._scheduler.spend(_PORTION_S)
        return await self._whole.next()

    def work(self) -> None:
        """Called by the scheduler; the client may have disconnected."""
        if self._turn is not None and not self._turn.done():
            self._scheduler.spend(_PORTION_S)
            self._turn.set_result(None)

    def close(self) -> None:
        """Drop the rest."""
        self._whole.close()
