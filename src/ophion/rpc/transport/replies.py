"""What becomes of a request: an answer now or later, whole or piece by piece.

Four kinds, so that the usual one costs nothing: `bytes` is a complete answer with status 200; an `Answer` has another
status or several parts (a large rendered result is not copied into an envelope); a `StreamedAnswer` is still being made
while it is sent (streaming.py); a `Pending` comes later. Statuses mean something to HTTP only and are ignored elsewhere
(json-rpc.md 1.4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from ophion.rpc.errors import INTERNAL_ERROR, as_rpc_error, failure
from ophion.rpc.transport.streaming import StreamedAnswer, collected

T = TypeVar("T")

OK: Final = 200
BAD_REQUEST: Final = 400
UNAUTHORIZED_STATUS: Final = 401
REQUEST_TIMEOUT: Final = 408

LARGE: Final = 64 * 1024
"""From here on copying an answer into its envelope costs more than writing three parts."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that is not simply `bytes`: another status, or parts that are written one after another."""

    status: int
    parts: tuple[bytes, ...]

    def join(self) -> bytes:
        """The whole body."""
        return b"".join(self.parts)


class Pending(Generic[T]):
    """Something that comes later; `deliver` is set by whoever received this and is called exactly once."""

    __slots__ = ("_abandon", "deliver", "forget", "is_done")

    def __init__(self, abandon: Callable[[], object]) -> None:
        self.deliver: Callable[[T], None] = _nobody
        self.forget: Callable[[Pending[T]], object] = _nobody
        """Called when the wait is over, however it ended."""
        self.is_done = False
        self._abandon = abandon

    def resolve(self, reply: T) -> None:
        """Hand over the reply, unless the wait has been given up."""
        if not self.is_done:
            self.is_done = True
            self.forget(self)
            # whoever waits often knows this object: without the way back the reply is gone once it is written
            deliver, self.deliver = self.deliver, _nobody
            deliver(reply)

    def abandon(self) -> None:
        """Stop the work behind this reply: its client is gone or its time is up."""
        self.is_done = True
        self.forget(self)
        self._abandon()


Complete: TypeAlias = bytes | Answer | StreamedAnswer
Reply: TypeAlias = bytes | Answer | StreamedAnswer | Pending[Complete]


def whole(answer: StreamedAnswer) -> Pending[Complete]:
    """A streamed answer put together, for those who take it in one piece only: batches, and HTTP/1.0."""
    task = asyncio.get_running_loop().create_task(collected(answer))
    pending: Pending[Complete] = Pending(task.cancel)

    def finish(done: asyncio.Task[bytes]) -> None:
        if not done.cancelled():
            error = done.exception()
            if error is None:
                pending.resolve(done.result())
            else:
                pending.resolve(failure(answer.id_text, as_rpc_error(error) or INTERNAL_ERROR()))

    task.add_done_callback(finish)
    return pending


def _nobody(told: object) -> None:
    """Who hears of a wait that nobody has asked about."""
