"""Gzip compression of large answers, for clients that accept it.

    parts of an answer, or a stream -> pieces -> gzip, in a lane of its own -> AnswerWriter -> chunks

A piece is compressed when the socket has sent the previous piece. So memory holds the answer and one small piece. The
event loop never compresses. A client waits at most for one piece of another client's answer.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from ophion.rpc.transport.http.messages import Response
from ophion.rpc.transport.streaming import StreamedAnswer
from ophion.runtime.thread_pools import Lane

WORTH_BYTES: Final = 16 * 1024
"""Minimum size in bytes of an answer that is compressed. A shorter answer fits into the initial TCP window."""
_LEVEL: Final = 1
"""Gzip level. Higher levels hardly make hexadecimal text shorter."""
_GZIP_WINDOW: Final = 31


def takes_gzip(accepted: bytes | None) -> bool:
    """Whether an `Accept-Encoding` header accepts gzip."""
    if accepted is None or b"gzip" not in accepted.lower():
        return False
    for offer in accepted.lower().split(b","):
        name, *parameters = (part.strip() for part in offer.split(b";"))
        if name in (b"gzip", b"x-gzip"):
            return not any(_is_zero_quality(one) for one in parameters)
    return False


def _is_zero_quality(parameter: bytes) -> bool:
    """Whether a parameter is a zero quality: `q=0`, `q=0.000`."""
    name, _, value = parameter.partition(b"=")
    return name.strip() == b"q" and not value.strip(b" 0.")


def is_encoded(response: Response) -> bool:
    """Whether a response already has a content encoding."""
    return b"content-encoding:" in response.headers.lower()


class EnvelopedSource:
    """A streamed answer as input of the compression: the pieces of the answer, inside their JSON-RPC envelope."""

    def __init__(self, answer: StreamedAnswer) -> None:
        self._body = answer.body
        self._first: bytes | None = answer.head + answer.body.first
        answer.body.first = b""
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


class PieceSource(Protocol):
    """Source of the pieces to compress."""

    async def next(self) -> bytes | None: ...
    def close(self) -> None: ...


class Compressed:
    """Compresses the pieces of an answer with gzip."""

    first = b""
    weight = 0
    """Always 0, because the source counts its own memory (`ReplyPieces`)."""

    def __init__(self, source: PieceSource, lane: Lane) -> None:
        self._source = source
        self._lane = lane
        # lazy import: many nodes never compress, and this extension module is a file of its own
        import zlib

        self._gzip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
        self._has_ended = False

    async def next(self) -> bytes | None:
        """Return the next non-empty compressed piece; None after the last piece."""
        while not self._has_ended:
            piece = await self._source.next()
            self._has_ended = piece is None
            output = await self._lane.run(self._gzip.flush if piece is None else partial(self._gzip.compress, piece))
            if output:
                return output
        return None

    def close(self) -> None:
        """Discard the answer pieces that are not compressed yet."""
        self._has_ended = True
        self._source.close()
