"""Batches: many requests in one message, run in order, without holding up everybody else."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from ophion.rpc.dispatch.request_ids import text_of_id
from ophion.rpc.errors import INVALID_REQUEST, NULL, RESPONSE_TOO_LARGE, failure
from ophion.rpc.language.registry import Caller
from ophion.rpc.transport.replies import LARGE, OK, Answer, Complete, Pending, Reply, whole
from ophion.rpc.transport.streaming import StreamedAnswer

_BATCH_TASKS: Final = 16
"""Members of one batch that may wait in lanes at the same time; the lanes serve other clients too."""
_SMALL_BATCH: Final = 16
"""A batch of so few members begins at once; a larger one waits for its turn when others are at work."""
_BATCH_SLICE_S: Final = 0.005
"""How long a batch may hold the loop before others get their turn."""


class Turns:
    """Which batch may hold the loop: one slice of one batch at a time, so that others are served in between.

    It also knows what the answers of all batches in progress hold together.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.held_bytes = 0
        self._queue: deque[Batch] = deque()

    @property
    def is_busy(self) -> bool:
        return bool(self._queue)

    def wait(self, batch: Batch) -> None:
        """Give a batch its turn when the others have had theirs."""
        self._queue.append(batch)
        if len(self._queue) == 1:
            self.loop.call_soon(self._next)

    def _next(self) -> None:
        batch = self._queue[0]
        batch.resume()
        self._queue.popleft()
        if self._queue:
            # not at once: requests that have arrived meanwhile come first
            self.loop.call_soon(self._next)


class Batch:
    """The members of one batch, run in order; answers keep that order whatever finishes first."""

    def __init__(
        self,
        request: Callable[[dict[str, Any], Caller | None], Reply],
        turns: Turns,
        messages: list[Any],
        caller: Caller | None,
        max_bytes: int,
    ) -> None:
        self._request = request
        self._turns = turns
        self._loop = turns.loop
        self._is_waiting = False
        self._messages = messages
        self._caller = caller
        self._max_bytes = max_bytes
        self._bytes = 0
        self._answers: list[bytes] = [b""] * len(messages)
        self._next = 0
        self._open: set[Pending[Complete]] = set()
        self._pending: Pending[Complete] | None = None

    def start(self) -> Reply:
        """Run as far as possible; the array of answers, or a pending reply when members wait."""
        if self._turns.is_busy and len(self._messages) > _SMALL_BATCH:
            self._wait()
        else:
            self._run()
            if self._next == len(self._messages) and not self._open:
                return self._joined()
        self._pending = Pending(self._abandon)
        return self._pending

    def resume(self) -> None:
        """It is this batch's turn."""
        self._is_waiting = False
        self._continue()

    def _wait(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._turns.wait(self)

    def _run(self) -> None:
        end = self._loop.time() + _BATCH_SLICE_S
        while self._next < len(self._messages) and len(self._open) < _BATCH_TASKS:
            position = self._next
            self._next += 1
            message = self._messages[position]
            if type(message) is not dict:
                self._answers[position] = failure(NULL, INVALID_REQUEST())
                continue
            if self._bytes > self._max_bytes or self._turns.held_bytes > 2 * self._max_bytes:
                self._answers[position] = _too_much(message)
                continue
            reply = self._request(message, self._caller)
            if isinstance(reply, StreamedAnswer):
                reply = whole(reply)
            if isinstance(reply, Pending):
                self._open.add(reply)
                reply.deliver = self._receiver(position, reply)
            else:
                self._keep(position, _body_of(reply))
            if self._loop.time() > end and self._next < len(self._messages):
                self._wait()
                return

    def _keep(self, position: int, text: bytes) -> None:
        self._bytes += len(text)
        self._turns.held_bytes += len(text)
        self._answers[position] = text if self._bytes <= self._max_bytes else _too_much(self._messages[position])

    def _receiver(self, position: int, pending: Pending[Complete]) -> Callable[[Complete], None]:
        def receive(reply: Complete) -> None:
            self._open.discard(pending)
            if isinstance(reply, StreamedAnswer):
                one = whole(reply)
                self._open.add(one)
                one.deliver = self._receiver(position, one)
                return
            self._keep(position, _body_of(reply))
            self._continue()

        return receive

    def _continue(self) -> None:
        if self._pending is None or self._pending.is_done or self._is_waiting:
            return
        self._run()
        if self._next == len(self._messages) and not self._open:
            self._pending.resolve(self._joined())

    def _abandon(self) -> None:
        self._release()
        for pending in tuple(self._open):
            pending.abandon()

    def _release(self) -> None:
        self._turns.held_bytes -= self._bytes
        self._bytes = 0

    def _joined(self) -> Complete:
        text = b"[" + b",".join(answer for answer in self._answers if answer) + b"]"
        self._release()
        return text if len(text) < LARGE else Answer(OK, (text,))


def _too_much(message: dict[str, Any]) -> bytes:
    """The answer to a member for which there is no room in its batch; a notification has none anyway."""
    written = text_of_id(message)
    return b"" if written == b"" else failure(written or NULL, RESPONSE_TOO_LARGE())


def _body_of(reply: bytes | Answer) -> bytes:
    return reply if isinstance(reply, bytes) else reply.join()
