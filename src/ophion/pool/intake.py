"""Raw transactions on their way into the pool.

Each arrival is handed to the decoding beside the loop at once; what has been decoded by the next wake-up is admitted
together, in the order of arrival. Nobody waits for the last of a batch, and the loop is never held up by a signature.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from ophion.native.transactions import Transaction
from ophion.runtime.decoding import Decoded, Decoding
from ophion.runtime.prompt import Prompt

A = TypeVar("A")


class Arrival(Struct, Generic[A]):
    """What one caller brought, and where its answer goes."""

    raws: Sequence[bytes]
    is_local: bool
    waiter: Prompt[A]


class Intake(Generic[A]):
    """Has arrivals decoded and hands them to `admit` in the order in which they came."""

    def __init__(self, decoding: Decoding, admit: Callable[[list[Arrival[A]], Decoded], None]) -> None:
        """What `admit` raises is the answer of all arrivals it was given and has not answered."""
        self._decoding = decoding
        self._admit = admit
        self._waiting: dict[int, Arrival[A]] = {}
        self._ready: list[Arrival[A]] = []
        self._ready_decoded: Decoded = []
        self._number = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, raws: Sequence[bytes], is_local: bool) -> Prompt[A]:
        """Queue raw transactions; the future is the answer to them."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._decoding.listen(self._collect)
            self._loop = loop
        waiter: Prompt[A] = Prompt(loop=loop)
        arrival = Arrival(raws, is_local, waiter)
        self._number += 1
        self._waiting[self._number] = arrival
        try:
            self._decoding.submit(self._number, raws)
        except Exception as error:  # noqa: BLE001  # the node is closing; the caller must hear of it
            del self._waiting[self._number]
            arrival.waiter.fail(error)
        return waiter

    def submit_decoded(self, transaction: Transaction, is_local: bool) -> Prompt[A]:
        """The same for one that the caller has decoded; those of one turn of the loop are admitted together."""
        loop = asyncio.get_running_loop()
        waiter: Prompt[A] = Prompt(loop=loop)
        if not self._ready:
            loop.call_soon(self._collect_ready)
        self._ready.append(Arrival((transaction.raw,), is_local, waiter))
        self._ready_decoded.append(transaction)
        return waiter

    def _collect_ready(self) -> None:
        arrivals, decoded, self._ready, self._ready_decoded = self._ready, self._ready_decoded, [], []
        self._hand_over(arrivals, decoded)

    def _collect(self) -> None:
        arrivals: list[Arrival[A]] = []
        decoded: Decoded = []
        for number, some in self._decoding.collect():
            arrivals.append(self._waiting.pop(number))
            decoded += some
        if arrivals:
            self._hand_over(arrivals, decoded)

    def _hand_over(self, arrivals: list[Arrival[A]], decoded: Decoded) -> None:
        try:
            self._admit(arrivals, decoded)
        except Exception as error:  # noqa: BLE001  # handed to the callers, who would wait for ever otherwise
            for arrival in arrivals:
                arrival.waiter.fail(error)
