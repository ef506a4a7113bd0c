"""Replies to a request: an answer now or later, whole or piece by piece.

There are four types, so that the common case has no overhead. `bytes` is a complete answer with status 200. An `Answer`
has another status or several parts; parts avoid copying a large result. A `StreamedAnswer` is sent while it is produced
(streaming.py). A `PendingReply` is resolved later. Only HTTP uses the status (json-rpc.md 1.4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from ophion.rpc.errors import INTERNAL_ERROR, as_rpc_error, clear_traceback, failure
from ophion.rpc.transport.streaming import StreamedAnswer, collected

T = TypeVar("T")

OK: Final = 200
BAD_REQUEST: Final = 400
UNAUTHORIZED_STATUS: Final = 401
REQUEST_TIMEOUT: Final = 408

SUCCESS: Final = b'{"jsonrpc":"2.0","id":%b,"result":%b}'
"""Template of a success response, with id and result. `failure` builds error responses."""
LARGE: Final = 64 * 1024
"""Size in bytes from which a result is written in three parts, because copying it into an envelope takes longer."""


class Answer(Struct, frozen=True):
    """A reply with a status other than 200, or with several parts."""

    status: int
    parts: tuple[bytes, ...]

    def join(self) -> bytes:
        """Return the whole body as one byte string."""
        return b"".join(self.parts)


def _ignore(value: object) -> None:
    """Default callback: ignore the value."""


def _nothing() -> None:
    """Default callback: do nothing."""


class PendingReply(Struct, Generic[T], eq=False):
    """A reply that is resolved later. The receiver sets `deliver`, which is called exactly once."""

    _abandon: Callable[[], object] = _nothing
    """Cancels the work that produces the reply. Does nothing if this work cannot be cancelled."""
    weight: int = 0
    """Memory that the request holds, in bytes; 0 if unknown."""
    memory_changed: Callable[[], object] = _nothing
    """Called after a large change of `weight`. The receiver sets this callback."""
    deliver: Callable[[T], None] = _ignore
    forget: Callable[[PendingReply[T]], object] = _ignore
    """Called when the reply is resolved or abandoned."""
    is_done: bool = False
    has_timeout: bool = True
    """Whether the request timeout applies."""

    def resolve(self, reply: T) -> None:
        """Deliver the reply, unless the request was abandoned."""
        if not self.is_done:
            self.is_done = True
            self.forget(self)
            # drop the callbacks, because they form a reference cycle that keeps the reply in memory
            deliver, self.deliver, self.memory_changed, self._abandon = self.deliver, _ignore, _nothing, _nothing
            deliver(reply)

    def cut_short(self, reply: T) -> None:
        """Deliver a reply before the work has ended, and cancel the work."""
        abandon = self._abandon
        self.resolve(reply)
        abandon()

    def follow(self, other: PendingReply[T], ended: Callable[[], object] | None = None) -> None:
        """Resolve with the reply of another `PendingReply`. `ended` is called once, when `other` is resolved or
        abandoned.
        """
        ends = [] if ended is None else [ended]

        def end() -> None:
            if ends:
                ends.pop()()

        def abandon() -> None:
            other.abandon()
            end()

        def deliver(reply: T) -> None:
            end()
            self.resolve(reply)

        self._abandon = abandon
        other.deliver = deliver
        other.memory_changed = lambda: self.report_memory(other.weight)
        self.report_memory(other.weight or self.weight)

    def report_memory(self, weight: int) -> None:
        """Set the memory that the request holds, in bytes."""
        self.weight = weight
        self.memory_changed()

    def abandon(self) -> None:
        """Cancel the work, because the client has disconnected or the request has timed out."""
        self.is_done = True
        self.forget(self)
        abandon, self._abandon, self.deliver, self.memory_changed = self._abandon, _nothing, _ignore, _nothing
        abandon()


Complete: TypeAlias = bytes | Answer | StreamedAnswer
Reply: TypeAlias = bytes | Answer | StreamedAnswer | PendingReply[Complete]


def whole(answer: StreamedAnswer, max_bytes: int | None = None) -> PendingReply[Complete]:
    """Collect a streamed answer into a single answer, for batches and HTTP/1.0, which cannot stream."""
    pending: PendingReply[Complete] = PendingReply(lambda: task.cancel())
    task = asyncio.get_running_loop().create_task(collected(answer, max_bytes, pending.report_memory))

    def finish(done: asyncio.Task[bytes]) -> None:
        if not done.cancelled():
            error = done.exception()
            if error is None:
                pending.resolve(done.result())
            else:
                pending.resolve(failure(answer.id_text, as_rpc_error(error) or INTERNAL_ERROR()))
                clear_traceback(error)

    task.add_done_callback(finish)
    return pending
