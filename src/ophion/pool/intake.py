"""Raw transactions on their way into the pool, put together so that Rust decodes many in one call.

Everything submitted in one turn of the loop, and everything that arrives while the previous batch is being decoded,
crosses as one call: recovering a sender is most of the cost, and a large batch uses all cores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from ophion.native.transactions import Transaction, decode_transactions
from ophion.runtime.lanes import Lane

_INLINE: Final = 8
"""So few transactions, 50 microseconds each, are decoded on the loop: handing them to a thread and back costs as much
as one, and while a batch is away its senders all wait for the last of it instead of each coming back in its turn."""
_INLINE_BYTES: Final = 16 * 1024

A = TypeVar("A")


@dataclass(slots=True)
class Arrival(Generic[A]):
    """What one caller brought, and where its answer goes."""

    raws: Sequence[bytes]
    is_local: bool
    waiter: asyncio.Future[A]

    def answer(self, answer: A) -> None:
        """Answer, unless the caller has gone."""
        if not self.waiter.done():
            self.waiter.set_result(answer)

    def fail(self, error: Exception) -> None:
        """The answer is an error."""
        if not self.waiter.done():
            self.waiter.set_exception(error)


Decoded = list[Transaction | str]
"""Each transaction, or why its bytes are none."""


class Intake(Generic[A]):
    """Collects arrivals, has them decoded, and hands them to `admit` in the order in which they came."""

    def __init__(self, lane: Lane, admit: Callable[[list[Arrival[A]], Decoded], None]) -> None:
        """What `admit` raises is the answer of all arrivals it was given and has not answered."""
        self._lane = lane
        self._admit = admit
        self._waiting: list[Arrival[A]] = []
        self._is_flush_due = False
        self._is_decoding = False

    def submit(self, raws: Sequence[bytes], is_local: bool) -> asyncio.Future[A]:
        """Queue raw transactions; the future is the answer to them."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[A] = loop.create_future()
        self._waiting.append(Arrival(raws, is_local, waiter))
        if not self._is_flush_due and not self._is_decoding:
            self._is_flush_due = True
            loop.call_soon(self._flush)
        return waiter

    def _flush(self) -> None:
        self._is_flush_due = False
        arrivals, self._waiting = self._waiting, []
        if not arrivals:
            return
        raws = [raw for arrival in arrivals for raw in arrival.raws]
        if len(raws) <= _INLINE and sum(map(len, raws)) <= _INLINE_BYTES:
            self._hand_over(arrivals, lambda: decode_transactions(raws))
            return
        try:
            decoding = self._lane.submit(lambda: decode_transactions(raws))
        except Exception as error:  # noqa: BLE001  # the lanes are closed; the callers must hear of it
            _fail(arrivals, error)
            return
        self._is_decoding = True
        decoding.add_done_callback(lambda done: self._decoded(arrivals, done))

    def _decoded(self, arrivals: list[Arrival[A]], decoding: asyncio.Future[Decoded]) -> None:
        self._is_decoding = False
        if decoding.cancelled():
            for arrival in arrivals:
                arrival.waiter.cancel()
        elif len(self._waiting) > _INLINE:
            # the next batch is decoded in its lane while this one is admitted here
            self._flush()
            self._hand_over(arrivals, decoding.result)
        else:
            # one that is decoded at once must not overtake this one
            self._hand_over(arrivals, decoding.result)
            self._flush()

    def _hand_over(self, arrivals: list[Arrival[A]], decode: Callable[[], Decoded]) -> None:
        try:
            self._admit(arrivals, decode())
        except Exception as error:  # noqa: BLE001  # handed to the callers, who would wait for ever otherwise
            _fail(arrivals, error)


def _fail(arrivals: list[Arrival[A]], error: Exception) -> None:
    for arrival in arrivals:
        arrival.fail(error)
