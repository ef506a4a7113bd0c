"""Answers on their way to one HTTP client.

They leave in the order of their requests, whatever finishes first; what is ready in one turn of the loop leaves in one
write.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, cast

from msgspec import Struct

from ophion.rpc.transport.http.compression import WORTH_BYTES, Compressed, Made, is_encoded
from ophion.rpc.transport.http.messages import (
    GZIP,
    JSON,
    Response,
    chunked_head,
    json_head,
    response_head,
)
from ophion.rpc.transport.http.policy import Result
from ophion.rpc.transport.replies import Answer, Complete, Pending, whole
from ophion.rpc.transport.streaming import Bare, Flow, Pump, StreamedAnswer, as_it_is, chunk
from ophion.runtime.chunked_body import PORTION_BYTES, Piece, Portions, Whole
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.lanes import Lane

MAX_PIPELINED: Final = 32
_MAX_PIPELINED_BYTES: Final = 64 * 1024
"""Requests at work on one connection and answers that wait for their turn; large ones go one by one."""
WEIGHT_OF_A_BYTE: Final = 8
"""What a request takes while it is at work, for each byte of its text; those who count better say so (`Pending`)."""


class _Slot(Struct, eq=False):
    """The place of one answer in the order of answers."""

    keep_alive: bool
    is_old: bool
    extra: bytes
    size: int = 0
    takes_gzip: bool = False
    pending: Pending[Complete] | Pending[Response] | None = None
    parts: tuple[Piece, ...] | None = None
    stream: Flow | None = None
    frame: Callable[[bytes, bool], tuple[bytes, ...]] = chunk
    """What stands around the pieces of a stream."""
    kept: Whole | None = None
    """What is being compressed of an answer that is there."""
    is_bare: bool = False
    """Whether the body stays here, since nothing but the head was asked for."""

    @property
    def is_plain(self) -> bool:
        """Whether nothing but its length has to be said before a short answer."""
        return self.keep_alive and not (self.is_old or self.extra or self.is_bare)

    @property
    def weight(self) -> int:
        """Bytes that are kept for this answer."""
        if self.pending is not None:
            return self.pending.weight or self.size * WEIGHT_OF_A_BYTE
        size = 0 if self.stream is None else self.stream.body.weight
        return size + sum(map(len, self.parts or ())) + (0 if self.kept is None else self.kept.weight)

    def fill(self, result: Complete | Response, lane: Lane) -> None:
        """The answer is there: make its bytes, in the lane where they are to be made smaller."""
        if type(result) is Response:
            response = result
        elif type(result) is bytes:
            is_short = not self.takes_gzip or len(result) < WORTH_BYTES
            if is_short and self.is_plain and result:
                self.parts = (json_head(len(result)), result)
                return
            response = Response(200, (result,), JSON if result else None)
        elif type(result) is StreamedAnswer:
            if (
                self.takes_gzip and result.shape is None
            ):  # any other comes from elsewhere, and as it was asked for there
                self._compress(Response(200, (), JSON), Made(result), lane)
                return
            self.stream = result
            self.parts = (chunked_head(self.extra, self.keep_alive, result.shape),)
            return
        else:
            answer = cast(Answer, result)
            response = Response(answer.status, answer.parts, JSON)
        if self.takes_gzip and sum(map(len, response.body)) >= WORTH_BYTES and not is_encoded(response):
            self.kept = Whole(response.body)
            self._compress(response, self.kept, lane)
        else:
            body = () if self.is_bare else response.body
            self.parts = (response_head(response, self.extra, self.keep_alive, self.is_old), *body)

    def divide(self, turns: FairScheduler) -> None:
        """Where the answer is long, it leaves in portions."""
        parts = self.parts or ()
        if self.stream is None and sum(map(len, parts)) > PORTION_BYTES:
            self.stream, self.frame, self.parts = Bare(Portions(parts, turns)), as_it_is, ()

    def _compress(self, response: Response, source: Made | Whole, lane: Lane) -> None:
        self.stream = Bare(Compressed(source, lane))
        self.parts = (chunked_head(GZIP + self.extra, self.keep_alive, response),)


class DirectReply(Protocol):
    """An answer of another server that is copied to the client unchanged (gateway/fast_path.py)."""

    def as_pending(self) -> Pending[Any]:
        """Deliver the answer to a `Pending` instead."""


def _nobody() -> None:
    """Who hears of answers for a client that has gone."""


class Answers:
    """The answers that one client waits for; `settle` is called when one of them has come or has been sent."""

    __slots__ = (
        "_direct",
        "_direct_bytes",
        "_is_called",
        "_is_paused",
        "_lane",
        "_max_open",
        "_out",
        "_pump",
        "_queue",
        "_settle",
        "_transport",
        "_turns",
        "_weighed",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        lane: Lane,
        settle: Callable[[], None],
        weighed: Callable[[], None] = _nobody,
        turns: FairScheduler | None = None,
        max_open: int = MAX_PIPELINED,
    ) -> None:
        """`weighed` is called when a request that is at work keeps more or less than before.

        `turns` are given where answers are encrypted, which the loop does.
        """
        self._turns = turns
        self._max_open = max_open
        self._transport = transport
        self._lane = lane
        self._settle = settle
        self._weighed = weighed
        self._queue: deque[_Slot] = deque()
        self._out: list[Piece] = []
        self._direct: DirectReply | None = None
        """The only open request, while another server answers it; nothing is queued then."""
        self._direct_bytes = 0
        self._pump: Pump | None = None
        self._is_paused = False
        self._is_called = False
        """Whether what is there is about to be written."""

    def __len__(self) -> int:
        """Requests whose answers are not written yet."""
        return len(self._queue) if self._direct is None else 1

    @property
    def is_streaming(self) -> bool:
        """Whether an answer is being written while it is made."""
        return self._pump is not None

    @property
    def has_room(self) -> bool:
        """Whether the client may ask for more before it has these."""
        return len(self) < self._max_open and self.weight < _MAX_PIPELINED_BYTES

    @property
    def weight(self) -> int:
        """Bytes that are kept for answers which are not written yet."""
        queue = self._queue
        if len(queue) == 1:  # as nearly always
            return queue[0].weight
        if self._direct is not None:
            return self._direct_bytes * WEIGHT_OF_A_BYTE
        # asked with each request of those who send many at once, most of which are at work
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
        """The result of the next request, which had a body of this size; it leaves with the next `flush`.

        `is_bare`: without its own body, as the answer to a `HEAD`, which nobody streams or compresses.
        """
        if self._direct is not None:
            self.queue_direct()
        if type(result) is StreamedAnswer and is_old:
            result = whole(result)
        if isinstance(result, Pending):
            slot = _Slot(keep_alive, is_old, extra, size, takes_gzip, result, is_bare=is_bare)
            result.deliver = partial(self._receive, slot)
            result.weighed = self._weighed
            self._queue.append(slot)
            return
        slot = _Slot(keep_alive, is_old, extra, size, takes_gzip, is_bare=is_bare)
        self._fill(slot, result)
        if self._queue or slot.stream is not None:
            self._queue.append(slot)
        else:
            self._out.extend(cast("tuple[Piece, ...]", slot.parts))

    def put(self, text: bytes) -> None:
        """Bytes that are no answer; behind answers that are not there yet they wait for their turn."""
        if self._direct is not None:
            self.queue_direct()
        if not self._queue:
            self._out.append(text)
            return
        slot = _Slot(True, False, b"")
        slot.parts = (text,)
        self._queue.append(slot)

    def expect(self, reply: DirectReply, size: int) -> None:
        """Wait for an answer that the connection writes by itself; the request had a body of this size."""
        self._direct, self._direct_bytes = reply, size

    def delivered(self) -> None:
        """The expected answer is there."""
        self._direct = None

    def queue_direct(self) -> None:
        """Give the expected answer a place in the queue."""
        reply, self._direct = self._direct, None
        if reply is not None:
            self.add(reply.as_pending(), size=self._direct_bytes)

    def flush(self) -> bool:
        """Write what is there; whether there was something."""
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
                self._transport.write(b"".join(out))  # each write is a record of its own, which costs more than a copy
            else:
                self._transport.writelines(out)
            self._out = []
        if stream is not None:
            self._pump = Pump(self._transport, stream, queue[0].frame, self._streamed, self._is_paused)
        return bool(out)

    def pause(self) -> None:
        """The client does not take what was written."""
        self._is_paused = True
        if self._pump is not None:
            self._pump.pause()

    def resume(self) -> None:
        """It does again."""
        self._is_paused = False
        if self._pump is not None:
            self._pump.resume()

    def abandon(self) -> None:
        """The client is gone: nobody wants the rest."""
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
        # the connection, which knows this object, is not held any longer either
        self._settle = self._weighed = _nobody

    def _receive(self, slot: _Slot, reply: Complete | Response) -> None:
        if type(reply) is StreamedAnswer and slot.is_old:
            one = slot.pending = whole(reply)
            one.deliver = partial(self._receive, slot)
            return
        slot.pending = None
        if type(reply) is bytes and len(self._queue) == 1 and not self._out and slot.is_plain:
            size = len(reply)
            if 0 < size < WORTH_BYTES:  # as nearly always: short, and nobody waits before or behind it
                self._queue.clear()
                self._transport.write(json_head(size) + reply)
                self._settle()
                return
        self._fill(slot, reply)
        if len(self._queue) == 1:
            self._go_on()
        elif not self._is_called:
            # others come with it: what is answered in one step leaves in one write
            self._is_called = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _fill(self, slot: _Slot, result: Complete | Response) -> None:
        slot.fill(result, self._lane)
        if self._turns is not None:
            slot.divide(self._turns)

    def _go_on(self) -> None:
        self._is_called = False
        self.flush()
        self._settle()

    def _streamed(self) -> None:
        """The answer at the head of the queue has been sent."""
        self._pump = None
        self._queue.popleft()
        self._go_on()
