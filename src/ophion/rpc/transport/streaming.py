"""Streaming: answers that are sent while they are produced.

    Rust thread -> bounded channel -> TraceStream.next() in the trace lane -> StreamedResult -> transport, in chunks

A handler opens its stream with `opened`. A result that fits into the first piece is returned as plain `bytes`. A longer
result is a `StreamedResult`: the dispatcher wraps it in an envelope (`StreamedAnswer`) and a transport sends it piece
by piece (`AnswerWriter`). The writer reads the next piece when the socket has sent the previous one. So a slow client
holds one piece, or two if the stream reads ahead, and the work stops when the client disconnects.

An error before the first piece is an ordinary error response. A later error aborts the connection, because part of the
answer is already sent. So no client takes an incomplete answer for a complete one.
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
from ophion.runtime.slots import WAITS_FOR_SLOT, Slots
from ophion.runtime.thread_pools import Lane

logger = logging.getLogger(__name__)

_HUGE_LENGTH: Final = 1 << 62


class StreamLimit:
    """Limits the number of open streams. Each stream holds a thread and some memory until the client has read it."""

    def __init__(self, limit: int = 32, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._slots = Slots(limit)
        self.max_bytes = max_bytes
        """Maximum size of a result that cannot be streamed: inside a batch, or for HTTP/1.0."""

    @property
    def open(self) -> int:
        return self._slots.used

    def enter(self) -> None:
        """Count one more open stream. Raises `RpcError` above the limit."""
        if not self._slots.enter():
            raise TOO_MANY_TRACES()

    async def wait(self) -> None:
        """Wait until the limit allows one more stream of a batch, and count the stream."""
        await self._slots.wait()

    def leave(self, in_batch: bool) -> None:
        """Count one open stream less. `in_batch` means that `wait` has counted the stream."""
        self._slots.leave(in_batch)


class Source(Protocol):
    """Produces the pieces of a result. `next` may block, so it runs in a worker thread."""

    def next(self) -> bytes | None: ...
    def close(self) -> None: ...


class StreamedResult:
    """A result that is produced in pieces; the first piece is ready."""

    __slots__ = ("_ahead", "_in_batch", "_lane", "_reads_ahead", "_source", "_streams", "first", "max_bytes")

    def __init__(
        self,
        first: bytes,
        source: Source,
        lane: Lane,
        streams: StreamLimit,
        in_batch: bool = False,
        reads_ahead: bool = False,
    ) -> None:
        """Create a streamed result. With `in_batch`, `StreamLimit.wait` has already counted the stream.

        With `reads_ahead`, one piece is produced while the client reads the piece before it.
        """
        self.first = first
        self._source = source
        self._lane = lane
        self._reads_ahead = reads_ahead
        self._ahead: asyncio.Task[bytes | None] | None = None
        self.max_bytes = streams.max_bytes
        self._in_batch = in_batch
        self._streams: StreamLimit | None = None
        if not in_batch:
            streams.enter()
        self._streams = streams

    def __del__(self) -> None:
        self.close()

    @property
    def weight(self) -> int:
        """Return 0, because `StreamLimit` limits the memory of streamed results by limiting their number."""
        return 0

    def __len__(self) -> int:
        """Return a number larger than any unstreamed result, so that `Dispatcher` needs only one size check."""
        return _HUGE_LENGTH

    async def next(self) -> bytes | None:
        """Return the next piece of the result; None after the last piece."""
        ahead, self._ahead = self._ahead, None
        piece = await (self._lane.run(self._source.next) if ahead is None else ahead)
        if self._reads_ahead and piece is not None and self._streams is not None:
            self._ahead = asyncio.get_running_loop().create_task(self._lane.run(self._source.next))
            self._ahead.add_done_callback(_retrieve_error)
        return piece

    def close(self) -> None:
        """Stop producing pieces, and release the stream's slot in `StreamLimit`."""
        if self._ahead is not None:
            self._ahead.cancel()
            self._ahead = None
        self._source.close()
        if self._streams is not None:
            self._streams.leave(self._in_batch)
            self._streams = None


def _retrieve_error(producing: asyncio.Task[bytes | None]) -> None:
    """Retrieve and ignore the error of a piece for which no caller waits any more."""
    if not producing.cancelled():
        producing.exception()


class AnswerPieces(Protocol):
    """A sequence of answer pieces, of which the first is ready."""

    first: bytes
    """The first piece. The reader may replace the piece by empty bytes, to free its memory before the end of the
    stream.
    """

    @property
    def weight(self) -> int:
        """Return the memory that these pieces hold, in bytes, without memory that another component counts."""

    async def next(self) -> bytes | None:
        """Return the next piece; None after the last piece. Raises `OphionError` if the piece cannot be produced."""

    def close(self) -> None:
        """Discard the remaining pieces."""


class Body(AnswerPieces, Protocol):
    """Pieces of an answer that can also be collected into one result, for a batch or HTTP/1.0."""

    @property
    def max_bytes(self) -> int:
        """Return the maximum size of the collected pieces."""


class PieceStream(Protocol):
    """An answer that is sent in pieces, between a head and a tail."""

    @property
    def head(self) -> bytes: ...
    @property
    def body(self) -> AnswerPieces: ...
    @property
    def tail(self) -> bytes: ...


class StreamedAnswer(Struct, frozen=True):
    """An answer whose result is still being produced."""

    id_text: bytes
    head: bytes
    body: Body
    tail: bytes
    shape: ResponseHead | None = None
    """Head of the HTTP response; None for JSON with status 200."""


class BareAnswer(Struct, frozen=True):
    """An answer in pieces, without a JSON-RPC envelope."""

    body: AnswerPieces
    head: bytes = b""
    tail: bytes = b""


async def opened(
    lane: Lane, streams: StreamLimit, start: Callable[[], Source], reads_ahead: bool = False
) -> bytes | StreamedResult:
    """Start producing in the lane and wait for the first piece. If the result has only one piece, return it as the
    whole result. `reads_ahead` as in `StreamedResult`.

    A request of a batch waits for a stream slot first, because each stream holds a thread.
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
        return StreamedResult(first + second, sources[0], lane, streams, in_batch, reads_ahead)
    if in_batch:
        streams.leave(in_batch)
    return first


async def whole_of(
    body: Body, max_bytes: int | None = None, report_memory: Callable[[int], object] | None = None
) -> bytes:
    """Collect all pieces of a result into one result. Raises `RpcError` if the result is too long. Calls
    `report_memory` with the size collected so far.
    """
    limit = body.max_bytes if max_bytes is None else min(max_bytes, body.max_bytes)
    parts, size = [body.first], len(body.first)
    try:
        while (piece := await body.next()) is not None:
            parts.append(piece)
            size += len(piece)
            if size > limit:
                raise RESPONSE_TOO_LARGE()
            if report_memory is not None:
                report_memory(size)
    finally:
        body.close()
    return b"".join(parts)


async def collected(
    answer: StreamedAnswer, max_bytes: int | None = None, report_memory: Callable[[int], object] | None = None
) -> bytes:
    """Collect the whole answer. Raises `RpcError` if the answer is too long."""
    return b"".join((answer.head, await whole_of(answer.body, max_bytes, report_memory), answer.tail))


class ResponseHead(Protocol):
    """The head of an HTTP response (ophion.rpc.transport.http.messages.Response)."""

    @property
    def status(self) -> int: ...

    @property
    def content_type(self) -> bytes | None: ...

    @property
    def headers(self) -> bytes: ...

    @property
    def reason(self) -> bytes | None: ...


class AnswerWriter:
    """Writes one streamed answer to one transport.

    `frame` encodes a piece for the wire (HTTP chunks, WebSocket fragments); its second argument marks the last piece.
    `done` is called once after the last write. `is_paused` means that the send buffer of the transport is already full.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        answer: PieceStream,
        frame: Callable[[bytes, bool], tuple[bytes, ...]],
        done: Callable[[], None],
        is_paused: bool = False,
    ) -> None:
        self._transport = transport
        self._answer = answer
        self._frame = frame
        self._done = done
        self._is_writable: asyncio.Event = asyncio.Event()
        if not is_paused:
            self._is_writable.set()
        self._task: asyncio.Task[None] | None = asyncio.get_running_loop().create_task(
            self._run(), name="streamed answer"
        )

    @property
    def weight(self) -> int:
        """Return the memory that the unsent part of the answer holds, in bytes."""
        return self._answer.body.weight

    def pause(self) -> None:
        """Stop writing, because the send buffer is full."""
        self._is_writable.clear()

    def resume(self) -> None:
        """Continue writing the answer, because the send buffer has space again."""
        self._is_writable.set()

    def abandon(self) -> None:
        """Stop producing the answer, because the client has disconnected."""
        self._answer.body.close()
        # A cancelled task keeps its frames, which refer to this object. Drop the reference to the task; otherwise both
        # form a cycle, which only the garbage collector frees.
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def _run(self) -> None:
        answer = self._answer
        body = answer.body
        try:
            piece: bytes | None = answer.head + body.first or await body.next()
            body.first = b""
            while piece is not None:
                self._transport.writelines(self._frame(piece, False))
                piece = None  # release the piece: the transport holds the unsent bytes
                await self._is_writable.wait()
                piece = await body.next()
            self._transport.writelines(self._frame(answer.tail, True))
        except (OphionError, NativeError) as error:
            # log a transient error only at debug level, because the same error can end many streams
            level = logging.DEBUG if getattr(error, "transient", False) else logging.WARNING
            logger.log(level, "streamed answer aborted error=%s", error)
            self._transport.abort()
            return
        finally:
            body.close()
        self._done()


def chunk(piece: bytes, is_last: bool) -> tuple[bytes, ...]:
    """Encode a piece of a chunked HTTP body. Empty pieces are skipped, because an empty chunk ends the body."""
    if not piece:
        return (b"0\r\n\r\n",) if is_last else ()
    size = b"%x\r\n" % len(piece)
    return (size, piece, b"\r\n0\r\n\r\n" if is_last else b"\r\n")


def as_it_is(piece: bytes, is_last: bool) -> tuple[bytes, ...]:
    """Return a piece without framing, for an answer with a Content-Length."""
    return (piece,) if piece else ()


def fragments() -> Callable[[bytes, bool], tuple[bytes, ...]]:
    """Return an encoder for one WebSocket message: a text frame, then continuation frames."""
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
