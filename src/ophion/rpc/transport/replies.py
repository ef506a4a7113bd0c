"""What becomes of a request: an answer now or later, whole or piece by piece.

Four kinds, so that the usual one costs nothing: `bytes` is a complete answer with status 200; an `Answer` has another
status or several parts (a large rendered result is not copied into an envelope); a `StreamedAnswer` is still being made
while it is sent (streaming.py); a `Pending` comes later. Statuses mean something to HTTP only and are ignored elsewhere
(json-rpc.md 1.4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from ophion.rpc.errors import INTERNAL_ERROR, as_rpc_error, failure, let_go
from ophion.rpc.transport.streaming import StreamedAnswer, collected

T = TypeVar("T")

OK: Final = 200
BAD_REQUEST: Final = 400
UNAUTHORIZED_STATUS: Final = 401
REQUEST_TIMEOUT: Final = 408

SUCCESS: Final = b'{"jsonrpc":"2.0","id":%b,"result":%b}'
"""An answer with its id and its result; `failure` is the other one."""
LARGE: Final = 64 * 1024
"""From here on copying an answer into its envelope costs more than writing three parts."""


class Answer(Struct, frozen=True):
    """A reply that is not simply `bytes`: another status, or parts that are written one after another."""

    status: int
    parts: tuple[bytes, ...]

    def join(self) -> bytes:
        """The whole body."""
        return b"".join(self.parts)


def _nobody(told: object) -> None:
    """Who hears of a wait that nobody has asked about."""


def _nothing() -> None:
    """What happens when nobody counts."""


class Pending(Struct, Generic[T], eq=False):
    """Something that comes later; `deliver` is set by whoever received this and is called exactly once."""

    _abandon: Callable[[], object] = _nothing
    """Stops the work; nothing does where it goes on whether somebody waits for it or not."""
    weight: int = 0
    """Bytes that are kept because of the wait, as far as anybody has counted them."""
    weighed: Callable[[], object] = _nothing
    """Called when that has changed by much; set by whoever received this."""
    deliver: Callable[[T], None] = _nobody
    forget: Callable[[Pending[T]], object] = _nobody
    """Called when the wait is over, however it ended."""
    is_done: bool = False

    def resolve(self, reply: T) -> None:
        """Hand over the reply, unless the wait has been given up."""
        if not self.is_done:
            self.is_done = True
            self.forget(self)
            # whoever waits often knows this object, and so does the work: without these the reply is gone once it is
            # written, and what it was made from
            deliver, self.deliver, self.weighed, self._abandon = self.deliver, _nobody, _nothing, _nothing
            deliver(reply)

    def cut_short(self, reply: T) -> None:
        """Hand over a reply although the work behind it has not ended, and stop that work."""
        abandon = self._abandon
        self.resolve(reply)
        abandon()

    def follow(self, other: Pending[T], ended: Callable[[], object] | None = None) -> None:
        """What this waits for is what another one waits for; `ended` is called once, however that ends."""
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
        other.weighed = lambda: self.weigh(other.weight)
        self.weigh(other.weight or self.weight)

    def weigh(self, weight: int) -> None:
        """The wait keeps so many bytes now."""
        self.weight = weight
        self.weighed()

    def abandon(self) -> None:
        """Stop the work behind this reply: its client is gone or its time is up."""
        self.is_done = True
        self.forget(self)
        abandon, self._abandon, self.deliver, self.weighed = self._abandon, _nothing, _nobody, _nothing
        abandon()


Complete: TypeAlias = bytes | Answer | StreamedAnswer
Reply: TypeAlias = bytes | Answer | StreamedAnswer | Pending[Complete]


def whole(answer: StreamedAnswer, max_bytes: int | None = None) -> Pending[Complete]:
    """A streamed answer put together, for those who take it in one piece only: batches, and HTTP/1.0."""
    pending: Pending[Complete] = Pending(lambda: task.cancel())
    task = asyncio.get_running_loop().create_task(collected(answer, max_bytes, pending.weigh))

    def finish(done: asyncio.Task[bytes]) -> None:
        if not done.cancelled():
            error = done.exception()
            if error is None:
                pending.resolve(done.result())
            else:
                pending.resolve(failure(answer.id_text, as_rpc_error(error) or INTERNAL_ERROR()))
                let_go(error)

    task.add_done_callback(finish)
    return pending
