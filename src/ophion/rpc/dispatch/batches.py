"""Batches: many requests in one message, run in order, in time slices.

A small batch starts when it arrives. When its time slice is used up, the batch waits for the next one (fair_scheduler).
The scheduler finishes started batches one after the other, oldest first. If all batches progressed at the same time,
the node would hold the answers of all batches in memory. Answers within a batch are not streamed: each is rendered
whole, within the memory budget.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from time import perf_counter
from typing import Final, cast

from ophion.rpc.errors import RESPONSE_TOO_LARGE, failure
from ophion.rpc.transport.replies import LARGE, OK, Answer, Complete, PendingReply, Reply, whole
from ophion.rpc.transport.streaming import StreamedAnswer
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.slots import WAITS_FOR_SLOT

_BATCH_TASKS: Final = 16
"""Maximum number of requests of one batch that wait for worker threads at the same time. The limit leaves threads to
other clients.
"""
_SMALL_BATCH: Final = 16
"""A batch of up to this size starts when it arrives. A larger batch waits for a time slice while other batches run."""
_SLICE_S: Final = 0.002
"""Length of a time slice in seconds."""
_SLICE_BYTES: Final = 256 * 1024
"""A time slice ends when its answers reach this size in bytes."""


class Batch:
    """Runs the requests of one JSON-RPC batch; responses keep the order of the requests."""

    def __init__(
        self,
        request: Callable[[int], Reply],
        id_text: Callable[[int], bytes],
        members: int,
        scheduler: FairScheduler,
        max_bytes: int,
        weight: int = 0,
    ) -> None:
        """Create a batch. `request` runs the request at a position. `id_text` returns the id at a position, empty for a
        notification.
        """
        self._request = request
        # all requests of the batch run as the client's principal (runtime/principal.py), even after a wait for a worker
        # thread
        self._context = copy_context()
        self._context.run(WAITS_FOR_SLOT.set, True)
        self._id_text = id_text
        self._scheduler = scheduler
        self._is_scheduled = False
        self._max_bytes = max_bytes
        self._weight = weight
        self._memory_changed = 0
        self._bytes = 0
        self._answers: list[bytes] = [b""] * members
        self._next = 0
        self._open: set[PendingReply[Complete]] = set()
        self._streams: deque[tuple[int, StreamedAnswer]] = deque()
        """Streamed answers with their positions in the batch. The first streamed answer is being collected
        into memory.
        """
        self._pending: PendingReply[Complete] | None = None
        self._has_begun = False

    def start(self) -> Reply:
        """Run requests until a request waits or the time slice ends; return the array of answers or a pending reply."""
        if self._scheduler.is_over or (len(self._scheduler) and len(self._answers) > _SMALL_BATCH):
            self._schedule()
        else:
            self._run()
            if self._is_done:
                return self._joined()
        self._pending = PendingReply(self._abandon)
        self._pending.weight = self._weight + self._bytes
        return self._pending

    def work(self) -> None:
        """Continue in a new time slice; called by the fair scheduler."""
        self._is_scheduled = False
        self._continue()

    @property
    def _is_done(self) -> bool:
        return self._next == len(self._answers) and not self._open and not self._streams

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            if self._has_begun:
                self._scheduler.enqueue(self)
            else:
                self._scheduler.wait(self, 1.0)

    def _run(self) -> None:
        self._has_begun = True
        began, first = perf_counter(), self._bytes
        while self._next < len(self._answers) and len(self._open) + len(self._streams) < _BATCH_TASKS:
            position = self._next
            self._next += 1
            if self._bytes > self._max_bytes:
                self._answers[position] = self._too_large(position)
                continue
            reply = self._context.run(self._request, position)
            if isinstance(reply, StreamedAnswer):
                self._stream(position, reply)
            elif isinstance(reply, PendingReply):
                self._open.add(reply)
                reply.deliver = self._receiver(position, reply)
            else:
                self._store(position, _body_of(reply))
            if perf_counter() - began > _SLICE_S or self._bytes - first > _SLICE_BYTES:
                if self._next < len(self._answers):
                    self._schedule()
                break

    def _store(self, position: int, text: bytes) -> None:
        self._bytes += len(text)
        self._answers[position] = text if self._bytes <= self._max_bytes else self._too_large(position)
        if self._pending is not None and self._bytes - self._memory_changed > LARGE:
            self._memory_changed = self._bytes
            self._pending.report_memory(self._weight + self._bytes)

    def _too_large(self, position: int) -> bytes:
        """Return the error for an entry whose answer does not fit into the size limit of the batch; empty bytes for a
        notification.
        """
        written = self._id_text(position)
        return failure(written, RESPONSE_TOO_LARGE()) if written else b""

    def _receiver(self, position: int, pending: PendingReply[Complete]) -> Callable[[Complete], None]:
        def receive(reply: Complete) -> None:
            self._open.discard(pending)
            if isinstance(reply, StreamedAnswer):
                self._stream(position, reply)
                return
            self._store(position, _body_of(reply))
            self._continue()

        return receive

    def _stream(self, position: int, answer: StreamedAnswer) -> None:
        """Queue a streamed answer. Streamed answers are collected into memory one after the other."""
        self._streams.append((position, answer))
        if len(self._streams) == 1:
            self._collect()

    def _collect(self) -> None:
        position, answer = self._streams[0]
        collected = self._context.run(whole, answer, max(0, self._max_bytes - self._bytes))
        self._open.add(collected)

        def memory_changed() -> None:
            if self._pending is not None:
                self._pending.report_memory(self._weight + self._bytes + collected.weight)

        def receive(reply: Complete) -> None:
            self._open.discard(collected)
            self._streams.popleft()
            self._store(position, _body_of(cast("bytes | Answer", reply)))
            if self._streams:
                self._collect()
            self._continue()

        collected.memory_changed, collected.deliver = memory_changed, receive

    def _continue(self) -> None:
        if self._pending is None or self._pending.is_done or self._is_scheduled:
            return
        if self._next < len(self._answers) and self._scheduler.is_over:
            self._schedule()
            return
        self._run()
        if self._is_done:
            self._pending.resolve(self._joined())

    def _abandon(self) -> None:
        self._answers = []
        for pending in tuple(self._open):
            pending.abandon()
        for _, answer in self._streams:
            answer.body.close()

    def _joined(self) -> Complete:
        answers, self._answers = [answer for answer in self._answers if answer], []
        if self._bytes < LARGE:
            return b"[" + b",".join(answers) + b"]"
        # return the answers as parts, because joining the parts would double the memory
        parts: list[bytes] = []
        for number, answer in enumerate(answers):
            parts += (b"," if number else b"[", answer)
        return Answer(OK, (*parts, b"]"))


def _body_of(reply: bytes | Answer) -> bytes:
    return reply if isinstance(reply, bytes) else reply.join()
