"""Brings raw transactions into the pool.

Each arrival goes to the decoding thread at once. All arrivals that are decoded at the next wake-up are admitted
together, in the order of arrival except for blobs (`TransactionDecoder`). No transaction waits for a whole batch, and
signature recovery never blocks the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from ophion.errors import PoolRejected
from ophion.native.transactions import Transaction
from ophion.pool.events import Admission, hash_or_raise
from ophion.primitives.types import Hash32
from ophion.runtime.transaction_decoding import Decoded, TransactionDecoder

A = TypeVar("A")
Result = TypeVar("Result", contravariant=True)


class Arrival(Protocol[Result]):
    """Transactions of one caller.

    The caller gets the result in the iteration of the event loop that admits or refuses the transactions.
    """

    @property
    def raws(self) -> Sequence[bytes]: ...
    @property
    def is_local(self) -> bool: ...
    @property
    def takes_early_answer(self) -> bool:
        """Whether the caller may get its result before an instant sealer makes the block."""
        ...

    def answer(self, result: Result, /) -> None: ...
    def fail(self, error: Exception, /) -> None: ...


class _Waiting(asyncio.Future[A]):
    """An arrival as a future. A cancelled future gets no result."""

    def __init__(self, raws: Sequence[bytes], is_local: bool, takes_early_answer: bool = False) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self.raws = raws
        self.is_local = is_local
        self.takes_early_answer = takes_early_answer

    def fail(self, error: Exception) -> None:
        if not self.done():
            self.set_exception(error)


class BatchSubmission(_Waiting[A]):
    """Resolves to the results of all transactions of one caller."""

    def answer(self, result: A) -> None:
        if not self.done():
            self.set_result(result)


class SingleSubmission(_Waiting[Hash32]):
    """Resolves to the hash of a single transaction, or raises `PoolRejected`."""

    def answer(self, admissions: list[Admission]) -> None:
        if self.done():
            return
        try:
            self.set_result(hash_or_raise(admissions))
        except PoolRejected as error:
            self.fail(error)


class PoolIntake(Generic[A]):
    """Decodes submitted transactions in a thread. Passes them to `admit` in the order in which their decoding ends."""

    def __init__(self, decoding: TransactionDecoder, admit: Callable[[list[Arrival[A]], Decoded], None]) -> None:
        """Create the intake. If `admit` raises an exception, it becomes the result of all arrivals without a result."""
        self._decoding = decoding
        self._decoding.listen(self._collect)
        self._admit = admit
        self._ready: list[Arrival[A]] = []
        self._ready_decoded: Decoded = []

    def bring(self, arrival: Arrival[A]) -> None:
        """Queue raw transactions. Raises `RuntimeError` when the node is closing."""
        self._decoding.submit(arrival, arrival.raws)

    def submit(self, raws: Sequence[bytes], is_local: bool, senders: bytes | None = None) -> BatchSubmission[A]:
        """Queue raw transactions and return a future of their results. `senders` has the addresses of the expected
        senders, if they are known.
        """
        arrival: BatchSubmission[A] = BatchSubmission(raws, is_local)
        try:
            self._decoding.submit(arrival, raws, senders)
        except Exception as error:  # noqa: BLE001  # the caller gets the error
            arrival.fail(error)
        return arrival

    def admit_now(self, arrival: Arrival[A], transaction: Transaction) -> None:
        """Admit a decoded transaction before this method returns."""
        self._hand_over([arrival], [transaction])

    def bring_decoded(self, arrival: Arrival[A], transaction: Transaction) -> None:
        """Queue a decoded transaction.

        Decoded transactions that are queued in the same iteration of the event loop are admitted together.
        """
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
        except Exception as error:  # noqa: BLE001  # the callers get the error
            for arrival in arrivals:
                arrival.fail(error)
