"""Method tables that count and time what passes through them.

Measuring is decided when a service starts: a node without metrics has the plain table and pays nothing, not even the
question. A call that waits is measured to its end, a streamed answer to its first piece.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from time import perf_counter
from types import CoroutineType
from typing import Any

from ophion.rpc.errors import INTERNAL_ERROR_CODE, as_rpc_error
from ophion.rpc.registry import Bound, Invoke
from ophion.runtime.metrics import BUCKETS, Category, Counter, Durations, MetricsRegistry, Timer


class RequestMetrics:
    """How often and how long each method is called, on all transports."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self.times: Timer = registry.timer(
            Category.RPC, "request_time", "Seconds from request to answer of JSON-RPC methods.", "methodName"
        )
        self.errors: Counter = registry.counter(
            Category.RPC, "errors_total", "JSON-RPC requests answered with an error.", "methodName", "code"
        )

    def measured(self, table: Mapping[str, Bound]) -> dict[str, Bound]:
        """The same methods, measured; names that are not offered stay as they are."""
        return {name: self._measured(bound) if bound.name else bound for name, bound in table.items()}

    def _measured(self, bound: Bound) -> Bound:
        durations, failed = self.times.of(bound.name), self._failed(bound.name)
        invoke = (_waiting if bound.may_wait else _direct)(bound.invoke, durations, failed)
        return bound._replace(invoke=invoke)

    def _failed(self, name: str) -> Callable[[BaseException], None]:
        def failed(error: BaseException) -> None:
            known = as_rpc_error(error)
            self.errors.add(1, name, str(INTERNAL_ERROR_CODE if known is None else known.code))

        return failed


def _direct(invoke: Invoke, durations: Durations, failed: Callable[[BaseException], None]) -> Invoke:
    record, counts, least = durations.record, durations.counts, BUCKETS[0]

    def measured(params: Sequence[Any], caller: Any) -> Any:
        began = perf_counter()
        try:
            value = invoke(params, caller)
        except Exception as error:
            failed(error)
            record(perf_counter() - began)
            raise
        took = perf_counter() - began
        if took <= least:  # nearly always: spare the search and the call
            counts[0] += 1
            durations.total += took
        else:
            record(took)
        return value

    return measured


def _waiting(invoke: Invoke, durations: Durations, failed: Callable[[BaseException], None]) -> Invoke:
    record = durations.record

    def measured(params: Sequence[Any], caller: Any) -> Any:
        began = perf_counter()
        try:
            value = invoke(params, caller)
        except Exception as error:
            failed(error)
            record(perf_counter() - began)
            raise
        if type(value) is CoroutineType:
            return finished(value, began)
        if isinstance(value, asyncio.Future):
            value.add_done_callback(lambda done: ended(done, began))
        else:
            record(perf_counter() - began)
        return value

    async def finished(started: Coroutine[Any, Any, Any], began: float) -> Any:
        try:
            return await started
        except Exception as error:
            failed(error)
            raise
        finally:
            record(perf_counter() - began)

    def ended(done: asyncio.Future[Any], began: float) -> None:
        record(perf_counter() - began)
        error = None if done.cancelled() else done.exception()
        if error is not None:
            failed(error)

    return measured
