"""Brings raw transactions into the pool.

Each arrival goes to the decoding threads at once. All that are decoded at the next wake-up are admitted together, in
the order of arrival except for blobs (`Decoding`). No transaction waits for a whole batch, and signature recovery never
blocks the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from ophion.errors import PoolRejected
from ophion.native.transactions import Transaction
from ophion.pool.events import Admission, taken
from ophion.primitives.types import Hash32
from ophion.runtime.decoding import Decoded, Decoding

A = TypeVar("A")
Result = TypeVar("Result", contravariant=True)


class Arrival(Protocol[Result]):
    """Transactions of one caller, which gets its answer in the step that decides."""

    @property
    def raws(self) -> Sequence[bytes]: ...
    @property
    def is_local(self) -> bool: ...
    def answer(self, result: Result, /) -> None: ...
    def fail(self, error: Exception, /) -> None: ...


class _Waiting(asyncio.Future[A]):
    """An arrival as a future; a cancelled one gets no answer."""

    def __init__(self, raws: Sequence[bytes], is_local: bool) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self.raws = raws
        self.is_local = is_local

    def fail(self, error: Exception) -> None:
        if not self.done():
            self.set_exception(error)


class Awaited(_Waiting[A]):
    """Answer to all transactions of one caller."""

    def answer(self, result: A) -> None:
        if not self.done():
            self.set_result(result)


class Sending(_Waiting[Hash32]):
    """Hash of a single transaction; raises its refusal."""

    def answer(self, admissions: list[Admission]) -> None:
        if self.done():
            return
        try:
            self.set_result(taken(admissions))
        except PoolRejected as error:
            self.fail(error)


class Intake(Generic[A]):
    """Has arrivals decoded and passes them to `admit` in the order of completion."""

    def __init__(self, decoding: Decoding, admit: Callable[[list[Arrival[A]], Decoded], None]) -> None:
        """An exception of `admit` is the answer to all arrivals without one."""
        self._decoding = decoding
        self._decoding.listen(self._collect)
        self._admit = admit
        self._ready: list[Arrival[A]] = []
        self._ready_decoded: Decoded = []

    def bring(self, arrival: Arrival[A]) -> None:
        """Queue raw transactions; raises `RuntimeError` when the node is closing."""
        self._decoding.submit(arrival, arrival.raws)

    def submit(self, raws: Sequence[bytes], is_local: bool) -> Awaited[A]:
        """Like `bring`; the future is the answer."""
        arrival: Awaited[A] = Awaited(raws, is_local)
        try:
            self.bring(arrival)
        except Exception as error:  # noqa: BLE001  # the caller must hear of it
            arrival.fail(error)
        return arrival

    def bring_decoded(self, arrival: Arrival[A], transaction: Transaction) -> None:
        """Like `bring`, for a decoded transaction; those of one loop step are admitted together."""
        if not self._ready:
            asyncio.get_running_loop().call_soon(self._collect_ready)
        self._ready.append(arrival)
        self._ready_decoded.append(transaction)

    def _collect_ready(self) -> None:
        arrivals, decoded, self._ready, self._ready_decoded = self._ready, self._ready_decoded, [], []
        self._hand_over(arrivals, decoded)

    def _collect(self) -> None:
        arrivals, decoded = self._decoding.collect()
        if arrivals:
            self._hand_over(arrivals, decoded)

    def _hand_over(self, arrivals: list[Arrival[A]], decoded: Decoded) -> None:
        try:
            self._admit(arrivals, decoded)
        except Exception as error:  # noqa: BLE001  # handed to the callers, who would wait for ever otherwise
            for arrival in arrivals:
                arrival.fail(error)
