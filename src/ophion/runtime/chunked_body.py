"""Answers that are there and leave piece by piece, because each piece is work: to compress it, or to encrypt it.

Encrypting happens on the loop: more than a hundred milliseconds for the longest answer, and twenty for one of a
megabyte that came in two thousand parts, each a record of its own. So on an encrypted connection a long answer leaves
in portions: each when the client has taken the one before, and when there is time in the turn (`Turns`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

from ophion.runtime.fair_scheduler import Turns

Piece: TypeAlias = bytes | memoryview
"""A part of what is written; a view where copying the bytes would cost too much."""

PORTION_BYTES: Final = 64 * 1024
"""What is encrypted at a time: four records of TLS."""
_PORTION_S: Final = 100e-6
"""What that costs, with the copies of it."""
_RANK: Final = 1.0
"""Behind those who have sent an ordinary request (`Share.rank`)."""
_PIECE_BYTES: Final = 128 * 1024
"""What is compressed at a time: about a millisecond of work."""


class Whole:
    """An answer that is there, in pieces; what has been handed out is not held any longer."""

    def __init__(self, parts: Sequence[Piece], piece_bytes: int = _PIECE_BYTES) -> None:
        self._parts = deque(parts)
        self._piece_bytes = piece_bytes
        self.weight = sum(map(len, parts))
        """Bytes that are not handed out yet."""

    async def next(self) -> bytes | None:
        """Small parts come together, large ones are cut."""
        found: list[Piece] = []
        room = self._piece_bytes
        while self._parts and room:
            part = self._parts.popleft()
            if len(part) > room:
                view = memoryview(part)
                self._parts.appendleft(view[room:])
                part = view[:room]
            found.append(part)
            room -= len(part)
        self.weight -= self._piece_bytes - room
        return b"".join(found) or None

    def close(self) -> None:
        """Nobody wants the rest."""
        self._parts.clear()
        self.weight = 0


class Portions:
    """An answer for an encrypted connection."""

    first = b""

    def __init__(self, parts: Sequence[Piece], turns: Turns) -> None:
        self._whole = Whole(parts, PORTION_BYTES)
        self._turns = turns
        self._turn: asyncio.Future[None] | None = None

    @property
    def weight(self) -> int:
        """Bytes that are not encrypted yet."""
        return self._whole.weight

    async def next(self) -> bytes | None:
        """The next piece, when there is time to encrypt it; None after the last."""
        if self._turns.is_over:
            self._turn = asyncio.get_running_loop().create_future()
            self._turns.wait(self, _RANK)
            await self._turn
        else:
            self._turns.spend(_PORTION_S)
        return await self._whole.next()

    def work(self) -> None:
        """Its turn has come (`Turns`); the client may have gone meanwhile."""
        if self._turn is not None and not self._turn.done():
            self._turns.spend(_PORTION_S)
            self._turn.set_result(None)

    def close(self) -> None:
        """Nobody wants the rest."""
        self._whole.close()
