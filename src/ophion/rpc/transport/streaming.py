"""Answers that are still being made while they are sent.

    Rust thread -> bounded channel -> TraceStream.next() in the trace lane -> Streamed -> transport, chunk by chunk

A handler opens its stream with `opened`. A result that fits into the first piece comes back as plain `bytes` and takes
the usual road; a longer one comes back as a `Streamed`, which the dispatcher puts into an envelope without looking at
it (`StreamedAnswer`) and a transport sends piece by piece (`Pump`): the next piece is asked for when the socket has
taken the one before, so a slow client costs no memory, and the work stops when the client goes away.

An error before the first piece is an answer like any other. An error after it cannot be told any more, since the answer
has begun: the connection is cut off, which no client takes for a complete answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from ophion.errors import OphionError
from ophion.native.exceptions import NativeError
from ophion.rpc.errors import RESPONSE_TOO_LARGE, TOO_MANY_TRACES
from ophion.runtime.lanes import Lane
from ophion.runtime.slots import WAITS_FOR_SLOT, Slots

logger = logging.getLogger(__name__)

_LONGER_THAN_ANYTHING: Final = 1 << 62


class Streams:
    """Counts the streams that are open: each holds a thread and some memory as long as its client reads."""

    def __init__(self, limit: int = 32, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._slots = Slots(limit)
        self.max_bytes = max_bytes
        """Limit for a result that cannot be streamed: inside a batch, and to HTTP/1.0."""

    @property
    def open(self) -> int:
        return self._slots.used

    def enter(self) -> None:
        """Count one more stream; `RpcError` if there are too many."""
        if not self._slots.enter():
            raise TOO_MANY_TRACES()

    async def wait(self) -> None:
        """Count one more stream of a batch, waiting until the limit allows it."""
        await self._slots.wait()

    def leave(self, in_batch: bool) -> None:
        """Count one less; `in_batch` if it was counted by `wait`."""
        self._slots.leave(in_batch)


class Source(Protocol):
    """Something that is read piece by piece; `next` may block."""

    def next(self) -> bytes | None: ...
    def close(self) -> None: ...


class Streamed:
    """A result of which the first piece is there."""

    __slots__ = ("_in_batch", "_lane", "_source", "_streams", "first", "max_bytes")

    def __init__(self, first: bytes, source: Source, lane: Lane, streams: Streams, in_batch: bool = False) -> None:
        """`in_batch`: `Streams.wait` has counted the stream already."""
        self.first = first
        self._source = source
        self._lane = lane
        self.max_bytes = streams.max_bytes
        self._in_batch = in_batch
        self._streams: Streams | None = None
        if not in_batch:
            streams.enter()
        self._streams = streams

    def __del__(self) -> None:
        self.close()

    @property
    def weight(self) -> int:
        """Streams of the node itself are few, and counted (`Streams`)."""
        return 0

    def __len__(self) -> int:
        """More than any result that is handed over in one piece (`Dispatcher` looks at this alone)."""
        return _LONGER_THAN_ANYTHING

    async def next(self) -> bytes | None:
        """The next piece; None after the last."""
        return await self._lane.run(self._source.next)

    def close(self) -> None:
        """Stop the work: nobody wants the rest."""
        self._source.close()
        if self._streams is not None:
            self._streams.leave(self._in_batch)
            self._streams = None


class Pieces(Protocol):
    """Something of which the first piece is there."""

    first: bytes

    @property
    def weight(self) -> int:
        """Bytes that are kept for it in this process, where others do not count them already."""

    async def next(self) -> bytes | None:
        """The next piece; None after the last. `OphionError` when there will be none although it has not ended."""

    def close(self) -> None:
        """Nobody wants the rest."""


class Body(Pieces, Protocol):
    """Pieces that can also be had at once."""

    @property
    def max_bytes(self) -> int:
        """How much of it is put together, where it cannot be sent piece by piece."""


class Flow(Protocol):
    """An answer that leaves in pieces."""

    @property
    def head(self) -> bytes: ...
    @property
    def body(self) -> Pieces: ...
    @property
    def tail(self) -> bytes: ...


class StreamedAnswer(Struct, frozen=True):
    """An answer around a result that is still being made."""

    id_text: bytes
    head: bytes
    body: Body
    tail: bytes
    shape: Shape | None = None
    """How it looks over HTTP where that is not JSON with status 200."""


class Bare(Struct, frozen=True):
    """An answer of which everything is inside of the pieces."""

    body: Pieces
    head: bytes = b""
    tail: bytes = b""


async def opened(lane: Lane, streams: Streams, start: Callable[[], Source]) -> bytes | Streamed:
    """Start the work in the lane and wait for its first piece; the whole result when there is no second.

    A member of a batch waits for its place among the streams first: work that has begun holds a thread.
    """
    in_batch = WAITS_FOR_SLOT.get()
    if in_batch:
        await streams.wait()
    sources: list[Source] = []
    is_wanted = True

    def begin() -> tuple[bytes, bytes | None]:
        if not is_wanted:
            return b"", None
        source = start()
        sources.append(source)
        return source.next() or b"", source.next()

    try:
        first, second = await lane.run(begin)
    except BaseException as error:
        if in_batch:
            streams.leave(in_batch)
        if isinstance(error, asyncio.CancelledError):
            is_wanted = False
            for source in sources:
                source.close()
        raise
    if second is not None:
        return Streamed(first + second, sources[0], lane, streams, in_batch)
    if in_batch:
        streams.leave(in_batch)
    return first


async def whole_of(body: Body, max_bytes: int | None = None, weigh: Callable[[int], object] | None = None) -> bytes:
    """Everything in one piece; `RpcError` when it is too long for that. `weigh` hears how much there is so far."""
    most = body.max_bytes if max_bytes is None else min(max_bytes, body.max_bytes)
    parts, size = [body.first], len(body.first)
    try:
        while (piece := await body.next()) is not None:
            parts.append(piece)
            size += len(piece)
            if size > most:
                raise RESPONSE_TOO_LARGE()
            if weigh is not None:
                weigh(size)
    finally:
        body.close()
    return b"".join(parts)


async def collected(
    answer: StreamedAnswer, max_bytes: int | None = None, weigh: Callable[[int], object] | None = None
) -> bytes:
    """The whole answer in one piece; `RpcError` when it is too long for that."""
    return b"".join((answer.head, await whole_of(answer.body, max_bytes, weigh), answer.tail))


class Shape(Protocol):
    """The head of an HTTP answer (ophion.rpc.transport.http.messages.Response)."""

    @property
    def status(self) -> int: ...

    @property
    def content_type(self) -> bytes | None: ...

    @property
    def headers(self) -> bytes: ...

    @property
    def reason(self) -> bytes | None: ...


class Pump:
    """Moves one streamed answer to one transport.

    `frame` dresses a piece for the wire (HTTP chunks, WebSocket fragments); its second argument says whether it is the
    last piece. `done` is called once when everything has been written. `is_paused`: the transport's buffer is full
    already, with something that was written before.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        answer: Flow,
        frame: Callable[[bytes, bool], tuple[bytes, ...]],
        done: Callable[[], None],
        is_paused: bool = False,
    ) -> None:
        self._transport = transport
        self._answer = answer
        self._frame = frame
        self._done = done
        self._room: asyncio.Event = asyncio.Event()
        if not is_paused:
            self._room.set()
        self._task: asyncio.Task[None] = asyncio.get_running_loop().create_task(self._run(), name="streamed answer")

    @property
    def weight(self) -> int:
        """Bytes that are kept for the rest of the answer."""
        return self._answer.body.weight

    def pause(self) -> None:
        """The transport's buffer is full."""
        self._room.clear()

    def resume(self) -> None:
        """There is room again."""
        self._room.set()

    def abandon(self) -> None:
        """The client is gone."""
        self._answer.body.close()
        self._task.cancel()

    async def _run(self) -> None:
        answer = self._answer
        try:
            piece: bytes | None = answer.head + answer.body.first or await answer.body.next()
            while piece is not None:
                self._transport.writelines(self._frame(piece, False))
                await self._room.wait()
                piece = await answer.body.next()
            self._transport.writelines(self._frame(answer.tail, True))
        except (OphionError, NativeError) as error:
            # what may happen to a crowd at once is not worth a line for each
            level = logging.DEBUG if getattr(error, "transient", False) else logging.WARNING
            logger.log(level, "streamed answer cut off: %s", error)
            self._transport.abort()
            return
        finally:
            answer.body.close()
        self._done()


def chunk(piece: bytes, is_last: bool) -> tuple[bytes, ...]:
    """A piece of a chunked HTTP body; one without bytes would end it."""
    if not piece:
        return (b"0\r\n\r\n",) if is_last else ()
    size = b"%x\r\n" % len(piece)
    return (size, piece, b"\r\n0\r\n\r\n" if is_last else b"\r\n")


def as_it_is(piece: bytes, is_last: bool) -> tuple[bytes, ...]:
    """A piece of an answer whose head has told its length: nothing stands around it."""
    return (piece,) if piece else ()


def fragments() -> Callable[[bytes, bool], tuple[bytes, ...]]:
    """Pieces of one WebSocket text message: the first is a text frame, the others continue it."""
    is_first = True

    def frame(piece: bytes, is_last: bool) -> tuple[bytes, ...]:
        nonlocal is_first
        opcode = (0x01 if is_first else 0x00) | (0x80 if is_last else 0x00)
        is_first = False
        size = len(piece)
        if size < 126:
            return bytes((opcode, size)), piece
        if size < 1 << 16:
            return bytes((opcode, 126)) + size.to_bytes(2, "big"), piece
        return bytes((opcode, 127)) + size.to_bytes(8, "big"), piece

    return frame
