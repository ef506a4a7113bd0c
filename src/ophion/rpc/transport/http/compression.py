"""Answers made smaller with gzip, for clients that ask for it and where it is worth it.

    parts of an answer, or a stream -> pieces -> gzip, in a lane of its own -> Pump -> chunks

A piece is compressed when the socket has taken the one before: what is held is the answer itself and one small piece,
the loop never compresses anything, and no client waits for more than a piece of somebody else's.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import Final, Protocol

from ophion.rpc.transport.http.messages import Response
from ophion.rpc.transport.streaming import StreamedAnswer
from ophion.runtime.lanes import Lane

WORTH_BYTES: Final = 16 * 1024
"""From here on it is worth it: what is shorter leaves in the first window of a connection anyway."""
_LEVEL: Final = 1
"""Hex digits hardly become shorter with more work."""
_GZIP_WINDOW: Final = 31


def takes_gzip(accepted: bytes | None) -> bool:
    """Whether the `Accept-Encoding` of a request names gzip, and not only to refuse it."""
    if accepted is None or b"gzip" not in accepted.lower():
        return False
    for offer in accepted.lower().split(b","):
        name, *parameters = (part.strip() for part in offer.split(b";"))
        if name in (b"gzip", b"x-gzip"):
            return not any(_is_nothing(one) for one in parameters)
    return False


def _is_nothing(parameter: bytes) -> bool:
    """Whether a parameter says that something has no weight at all: `q=0`, `q=0.000`."""
    name, _, value = parameter.partition(b"=")
    return name.strip() == b"q" and not value.strip(b" 0.")


def is_encoded(response: Response) -> bool:
    """Whether an answer has an encoding already."""
    return b"content-encoding:" in response.headers.lower()


class Made:
    """An answer that is still being made, with what stands around its result."""

    def __init__(self, answer: StreamedAnswer) -> None:
        self._body = answer.body
        self._first: bytes | None = answer.head + answer.body.first
        self._tail: bytes | None = answer.tail

    async def next(self) -> bytes | None:
        piece, self._first = self._first, None
        if piece is None:
            piece = await self._body.next()
        if piece is None:
            piece, self._tail = self._tail, None
        return piece

    def close(self) -> None:
        self._body.close()


class Source(Protocol):
    """What is to be compressed."""

    async def next(self) -> bytes | None: ...
    def close(self) -> None: ...


class Compressed:
    """Pieces of a source as gzip."""

    first = b""
    weight = 0
    """What is being compressed is counted where it is (`Whole`)."""

    def __init__(self, source: Source, lane: Lane) -> None:
        self._source = source
        self._lane = lane
        self._gzip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
        self._has_ended = False

    async def next(self) -> bytes | None:
        """The next piece that is not empty; None after the last."""
        while not self._has_ended:
            piece = await self._source.next()
            self._has_ended = piece is None
            smaller = await self._lane.run(self._gzip.flush if piece is None else partial(self._gzip.compress, piece))
            if smaller:
                return smaller
        return None

    def close(self) -> None:
        """Nobody wants the rest."""
        self._has_ended = True
        self._source.close()
