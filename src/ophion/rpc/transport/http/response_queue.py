"""Response queue of one HTTP client.

Answers are sent in the order of their requests. One write sends all answers that are ready in the same iteration of the
loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, cast

from msgspec import Struct

from ophion.rpc.transport.http.compression import WORTH_BYTES, Compressed, EnvelopedSource, is_encoded
from ophion.rpc.transport.http.messages import (
    GZIP,
    JSON,
    Response,
    chunked_head,
    json_head,
    response_head,
)
from ophion.rpc.transport.http.policy import Result
from ophion.rpc.transport.replies import Answer, Complete, PendingReply, whole
from ophion.rpc.transport.streaming import AnswerWriter, BareAnswer, PieceStream, StreamedAnswer, as_it_is, chunk
from ophion.runtime.chunked_body import PORTION_BYTES, EncryptedReplyPieces, Piece, ReplyPieces
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.memory_budget import WORTH_NOTING
from ophion.runtime.thread_pools import Lane

MAX_PIPELINED: Final = 32
_MAX_PIPELINED_BYTES: Final = 64 * 1024
"""Maximum bytes of open requests and queued answers of one connection. Above this limit, requests run one by one."""
WEIGHT_OF_A_BYTE: Final = 8
"""Estimated memory of an open request per byte of its text, if `PendingReply.weight` is not set."""


class _Slot(Struct, eq=False):
    """One answer in the response queue."""

    keep_alive: bool
    is_old: bool
    extra: bytes
    size: int = 0
    takes_gzip: bool = False
    pending: PendingReply[Complete] | PendingReply[Response] | None = None
    parts: tuple[Piece, ...] | None = None
    stream: PieceStream | None = None
    frame: Callable[[bytes, bool], tuple[bytes, ...]] = chunk
    """Encodes the pieces of the streamed answer: as HTTP chunks, or without framing."""
    kept: ReplyPieces | None = None
    """The part of a complete answer that is not compressed yet."""
    is_bare: bool = False
    """Whether only the response head is sent, because the request is a `HEAD`."""

    @property
    def is_plain(self) -> bool:
        """Return whether the standard head of `json_head` fits this answer."""
        return self.keep_alive and not (self.is_old or self.extra or self.is_bare)

    @property
    def weight(self) -> int:
        """Return the memory that this answer holds, in bytes."""
        if self.pending is not None:
            return self.pending.weight or self.size * WEIGHT_OF_A_BYTE
        size = 0 if self.stream is None else self.stream.body.weight
        return size + sum(map(len, self.parts or ())) + (0 if self.kept is None else self.kept.weight)

    def fill(self, result: Complete | Response, lane: Lane) -> None:
        """Build the bytes of the answer; if needed, a worker thread of `lane` compresses the bytes."""
        if type(result) is Response:
            response = result
        elif type(result) is bytes:
            is_short = not self.takes_gzip or len(result) < WORTH_BYTES
            if is_short and self.is_plain and result:
                self.parts = (json_head(len(result)), result)
                return
            response = Response(200, (result,), JSON if result else None)
        elif type(result) is StreamedAnswer:
            # do not compress an answer with a `shape`: another server has sent this answer, in its final encoding
            if self.takes_gzip and result.shape is None:
                self._compress(Response(200, (), JSON), EnvelopedSource(result), lane)
                return
            self.stream = result
            self.parts = (chunked_head(self.extra, self.keep_alive, result.shape),)
            return
        else:
            answer = cast(Answer, result)
            response = Response(answer.status, answer.parts, JSON)
        if self.takes_gzip and sum(map(len, response.body)) >= WORTH_BYTES and not is_encoded(response):
            self.kept = ReplyPieces(response.body)
            self._compress(response, self.kept, lane)
        else:
            body = () if self.is_bare else response.body
            self.parts = (response_head(response, self.extra, self.keep_alive, self.is_old), *body)

    def divide(self, scheduler: FairScheduler) -> None:
        """Send a long answer in parts, one part in each time slice."""
        parts = self.parts or ()
        if self.stream is None and sum(map(len, parts)) > PORTION_BYTES:
            self.stream, self.frame, self.parts = BareAnswer(EncryptedReplyPieces(parts, scheduler)), as_it_is, ()

    def _compress(self, response: Response, source: EnvelopedSource | ReplyPieces, lane: Lane) -> None:
        self.stream = BareAnswer(Compressed(source, lane))
        self.parts = (chunked_head(GZIP + self.extra, self.keep_alive, response),)


class DirectReply(Protocol):
    """An answer of another server that is copied to the client unchanged (gateway/fast_path.py)."""

    def as_pending(self) -> PendingReply[Any]:
        """Deliver the answer to a `PendingReply` instead of to the client."""


def _do_nothing() -> None:
    """Default callback: do nothing."""


class ResponseQueue:
    """The open answers of one client. Calls `settle` when an answer is complete or sent."""

    __slots__ = (
        "_direct",
        "_direct_bytes",
        "_is_flush_scheduled",
        "_is_paused",
        "_lane",
        "_max_open",
        "_memory_changed",
        "_out",
        "_pump",
        "_queue",
        "_settle",
        "_transport",
        "_turns",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        lane: Lane,
        settle: Callable[[], None],
        memory_changed: Callable[[], None] = _do_nothing,
        scheduler: FairScheduler | None = None,
        max_open: int = MAX_PIPELINED,
    ) -> None:
        """Create the queue. `memory_changed` is called when the memory of an open request changes.

        `scheduler` is set for encrypted connections, because encryption takes time on the event loop.
        """
        self._turns = scheduler
        self._max_open = max_open
        self._transport = transport
        self._lane = lane
        self._settle = settle
        self._memory_changed = memory_changed
        self._queue: deque[_Slot] = deque()
        self._out: list[Piece] = []
        self._direct: DirectReply | None = None
        """The only open request, if another server answers it directly; the queue is empty in this case."""
        self._direct_bytes = 0
        self._pump: AnswerWriter | None = None
        self._is_paused = False
        self._is_flush_scheduled = False
        """Whether `flush` is scheduled for the next loop iteration."""

    def __len__(self) -> int:
        """Return the number of requests whose answers are not written yet."""
        return len(self._queue) if self._direct is None else 1

    @property
    def is_streaming(self) -> bool:
        """Return whether a streamed answer is being written."""
        return self._pump is not None

    @property
    def accepts_more(self) -> bool:
        """Return whether the client may send another request before its open requests are answered."""
        return len(self) < self._max_open and self.weight < _MAX_PIPELINED_BYTES

    @property
    def weight(self) -> int:
        """Return the memory that unwritten answers hold, in bytes."""
        queue = self._queue
        if len(queue) == 1:
            return queue[0].weight
        if self._direct is not None:
            return self._direct_bytes * WEIGHT_OF_A_BYTE
        # this code repeats `_Slot.weight` inline, because it runs for each request of clients with many open requests
        return sum(
            [
                slot.weight if slot.pending is None else slot.pending.weight or slot.size * WEIGHT_OF_A_BYTE
                for slot in queue
            ]
        )

    def add(
        self,
        result: Result,
        keep_alive: bool = True,
        is_old: bool = False,
        extra: bytes = b"",
        size: int = 0,
        takes_gzip: bool = False,
        is_bare: bool = False,
    ) -> None:
        """Add the result of the next request, whose body had `size` bytes; the next `flush` sends it.

        With `is_bare`, only the response head is sent (for a `HEAD` request); the answer is neither streamed nor
        compressed.
        """
        if self._direct is not None:
            self.queue_direct()
        if type(result) is StreamedAnswer and is_old:
            result = whole(result)
        if isinstance(result, PendingReply):
            slot = _Slot(keep_alive, is_old, extra, size, takes_gzip, result, is_bare=is_bare)
            result.deliver = partial(self._receive, slot)
            result.memory_changed = self._memory_changed
            self._queue.append(slot)
            return
        slot = _Slot(keep_alive, is_old, extra, size, takes_gzip, is_bare=is_bare)
        self._fill(slot, result)
        if self._queue or slot.stream is not None:
            self._queue.append(slot)
        else:
            self._out.extend(cast("tuple[Piece, ...]", slot.parts))

    def put(self, text: bytes) -> None:
        """Queue bytes that are not an answer, such as `100 Continue`, after all answers queued earlier."""
        if self._direct is not None:
            self.queue_direct()
        if not self._queue:
            self._out.append(text)
            return
        slot = _Slot(True, False, b"")
        slot.parts = (text,)
        self._queue.append(slot)

    def expect(self, reply: DirectReply, size: int) -> None:
        """Reserve the next position for an answer that the connection itself copies from another server. `size` is the
        body size of the request.
        """
        self._direct, self._direct_bytes = reply, size

    def delivered(self) -> None:
        """Record that the answer announced by `expect` has been sent."""
        self._direct = None

    def queue_direct(self) -> None:
        """Move the answer announced by `expect` into the queue, so that it keeps its position among the answers."""
        reply, self._direct = self._direct, None
        if reply is not None:
            self.add(reply.as_pending(), size=self._direct_bytes)

    def flush(self) -> bool:
        """Write the answers that are ready; return whether any answer was ready."""
        queue, out = self._queue, self._out
        if not queue and not out:
            return False
        while queue and queue[0].parts is not None and queue[0].stream is None:
            out.extend(queue.popleft().parts or ())
        stream = None
        if queue and queue[0].parts is not None:
            out.extend(queue[0].parts)
            queue[0].parts, stream = None, queue[0].stream
        if out:
            if len(out) == 1:
                self._transport.write(out[0])
            elif self._turns is not None:
                # join the parts, because a copy costs less than another TLS record
                self._transport.write(b"".join(out))
            else:
                self._transport.writelines(out)
            self._out = []
        if stream is not None:
            self._pump = AnswerWriter(self._transport, stream, queue[0].frame, self._streamed, self._is_paused)
        return bool(out)

    def pause(self) -> None:
        """Stop streaming, because the send buffer is full."""
        self._is_paused = True
        if self._pump is not None:
            self._pump.pause()

    def resume(self) -> None:
        """Continue a streamed answer, because the send buffer has space again."""
        self._is_paused = False
        if self._pump is not None:
            self._pump.resume()

    def abandon(self) -> None:
        """Cancel all open requests, because the client has disconnected."""
        self.queue_direct()
        if self._pump is not None:
            self._pump.abandon()
            self._pump = None
        for slot in self._queue:
            if slot.pending is not None:
                slot.pending.abandon()
            elif slot.stream is not None:
                slot.stream.body.close()
        self._queue.clear()
        # remove the references to the connection, which form a reference cycle
        self._settle = self._memory_changed = _do_nothing

    def _receive(self, slot: _Slot, reply: Complete | Response) -> None:
        if type(reply) is StreamedAnswer and slot.is_old:
            one = slot.pending = whole(reply)
            one.deliver = partial(self._receive, slot)
            return
        slot.pending = None
        if type(reply) is bytes and len(self._queue) == 1 and not self._out and slot.is_plain:
            size = len(reply)
            if 0 < size < WORTH_BYTES:  # in the common case, the queue holds one short answer
                self._queue.clear()
                self._transport.write(json_head(size) + reply)
                self._settle()
                return
        self._fill(slot, reply)
        if len(self._queue) == 1:
            self._flush_and_settle()
            return
        if not self._is_flush_scheduled:
            # write in the next loop iteration, because more answers may complete in this iteration
            self._is_flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush_and_settle)
        if slot.weight > WORTH_NOTING:
            # report a large answer now, because thousands of connections may receive one in the same iteration
            self._memory_changed()

    def _fill(self, slot: _Slot, result: Complete | Response) -> None:
        slot.fill(result, self._lane)
        if self._turns is not None:
            slot.divide(self._turns)

    def _flush_and_settle(self) -> None:
        self._is_flush_scheduled = False
        self.flush()
        self._settle()

    def _streamed(self) -> None:
        """Remove the streamed answer at the front of the queue, because it has been sent."""
        self._pump = None
        self._queue.popleft()
        self._flush_and_settle()
