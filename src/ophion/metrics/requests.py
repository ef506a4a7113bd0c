"""Method tables that count and time requests.

A service chooses its table at start: without metrics it uses the plain table at no cost. The duration of a call ends
with its reply; for a streamed reply, it ends with the first piece. Every call is counted. Of the calls that finish
without waiting, only one in sixteen is timed (`DurationHistogram.sample`), because reading the clock costs more than
counting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ophion.pool.events import Admission, Rejected
from ophion.rpc.errors import INTERNAL_ERROR_CODE, METHOD_NOT_FOUND, as_rpc_error
from ophion.runtime.metric_category import Category
from ophion.runtime.metrics_registry import Counter, DurationHistogram, MetricsRegistry, Timer

if TYPE_CHECKING:
    from ophion.pool.intake import Arrival
    from ophion.rpc.schema.registry import BoundMethod, Invoke, MethodTable, SubmitTransaction

UNKNOWN: Final = "unknown"
"""Label that all unknown methods share."""


class RequestMetrics:
    """Count and duration of requests by method, over all transports."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self.times: Timer = registry.timer(
            Category.RPC, "request_time", "Seconds from request to response of JSON-RPC methods.", "methodName"
        )
        self.errors: Counter = registry.counter(
            Category.RPC, "errors_total", "JSON-RPC requests answered with an error.", "methodName", "code"
        )

    def measured(self, table: MethodTable) -> MethodTable:
        """Return the same methods with measurement. Unknown methods share one label, because clients may send
        any name.
        """
        measured = table.map(self._measured)
        measured.on_unknown = lambda: self.errors.add(1, UNKNOWN, str(METHOD_NOT_FOUND.code))
        return measured

    def _measured(self, name: str, bound: BoundMethod) -> BoundMethod:
        if not bound.name:
            return bound._replace(invoke=_counted(bound.invoke, self._failed(name)))
        durations, failed = self.times.of(bound.name), self._failed(bound.name)
        watch = _waiting if bound.may_wait else _direct
        return bound._replace(
            invoke=watch(bound.invoke, durations, failed),
            call=watch(bound.call, durations, failed),
            latest_read=None if bound.latest_read is None else bound.latest_read.counted(durations),
            submit=None if bound.submit is None else _submit_timed(bound.submit, durations, failed),
        )

    def _failed(self, name: str) -> Callable[[BaseException], None]:
        return partial(self.note_error, name)

    def note_error(self, name: str, error: BaseException) -> None:
        """Count an error of a method."""
        known = as_rpc_error(error)
        self.errors.add(1, name, str(INTERNAL_ERROR_CODE if known is None else known.code))


def _counted(invoke: Invoke, failed: Callable[[BaseException], None]) -> Invoke:
    def counted(params: Sequence[Any], caller: Any) -> Any:
        try:
            return invoke(params, caller)
        except BaseException as error:
            failed(error)
            raise

    return counted


def _direct(invoke: Invoke, durations: DurationHistogram, failed: Callable[[BaseException], None]) -> Invoke:
    def measured(params: Sequence[Any], caller: Any) -> Any:
        if durations.untimed:
            durations.untimed -= 1
            try:
                return invoke(params, caller)
            except BaseException as error:  # catch BaseException, because a Rust panic is not an `Exception`
                failed(error)
                raise
        began = perf_counter()
        try:
            return invoke(params, caller)
        except BaseException as error:
            failed(error)
            raise
        finally:
            durations.sample(perf_counter() - began)

    return measured


def _submit_timed(
    submit: SubmitTransaction, durations: DurationHistogram, failed: Callable[[BaseException], None]
) -> SubmitTransaction:
    def measured(arrival: Arrival[list[Admission]]) -> None:
        began = perf_counter()
        try:
            submit(_Timed(arrival, began, durations, failed))
        except Exception as error:
            durations.record(perf_counter() - began)
            failed(error)
            raise

    return measured


class _Timed(Struct):
    """A submitted transaction. Its time is measured until the pool replies."""

    arrival: Arrival[list[Admission]]
    began: float
    durations: DurationHistogram
    failed: Callable[[BaseException], None]
    is_recorded: bool = False

    @property
    def raws(self) -> Sequence[bytes]:
        return self.arrival.raws

    @property
    def is_local(self) -> bool:
        return self.arrival.is_local

    @property
    def takes_early_answer(self) -> bool:
        return self.arrival.takes_early_answer

    def answer(self, admissions: list[Admission]) -> None:
        self._note([admission.error for admission in admissions if isinstance(admission, Rejected)])
        self.arrival.answer(admissions)

    def fail(self, error: Exception) -> None:
        self._note([error])
        self.arrival.fail(error)

    def _note(self, errors: Sequence[Exception]) -> None:
        if not self.is_recorded:  # record a request only once: `PoolIntake` may report a failure after the response
            self.is_recorded = True
            self.durations.record(perf_counter() - self.began)
            for error in errors:
                self.failed(error)


def _waiting(invoke: Invoke, durations: DurationHistogram, failed: Callable[[BaseException], None]) -> Invoke:
    def measured(params: Sequence[Any], caller: Any) -> Any:
        began = 0.0 if durations.untimed else perf_counter()
        try:
            value = invoke(params, caller)
        except BaseException as error:
            failed(error)
            if began:
                durations.sample(perf_counter() - began)
            else:
                durations.untimed -= 1
            raise
        if type(value) is CoroutineType:
            return finished(value, began or perf_counter())
        if isinstance(value, asyncio.Future):
            started = began or perf_counter()
            value.add_done_callback(lambda done: ended(done, started))
        elif began:
            durations.sample(perf_counter() - began)
        else:
            durations.untimed -= 1
        return value

    async def finished(started: Coroutine[Any, Any, Any], began: float) -> Any:
        try:
            return await started
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            failed(error)
            raise
        finally:
            durations.record(perf_counter() - began)

    def ended(done: asyncio.Future[Any], began: float) -> None:
        durations.record(perf_counter() - began)
        error = None if done.cancelled() else done.exception()
        if error is not None:
            failed(error)

    return measured
