"""Counters of a worker, which the node adds to its own."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, msgpack

from ophion.metrics.requests import RequestMetrics
from ophion.node.rpc_workers.node_state import NeedsNode
from ophion.rpc.transport.connection_slots import ConnectionSlots
from ophion.runtime.metrics_registry import MetricsRegistry


class WorkerCounts(Struct, frozen=True, array_like=True):
    """What a worker has counted since its last report."""

    evicted: int
    refused: int
    resident_bytes: int
    requests: dict[str, tuple[list[int], float]]
    """By method: requests per bucket of the duration, and the sum of their durations in seconds."""
    errors: dict[str, dict[str, float]]
    """By method and code."""


_encode = msgpack.Encoder().encode
decode_counts = msgpack.Decoder(WorkerCounts).decode


class WorkerRequestMetrics(RequestMetrics):
    """Request metrics of a worker. A request that is forwarded to the node does not count as failed."""

    def note_error(self, name: str, error: BaseException) -> None:
        if not isinstance(error, NeedsNode):
            super().note_error(name, error)


class CountReports:
    """Makes the reports of one worker."""

    def __init__(self, slots: ConnectionSlots[Any], is_measured: bool) -> None:
        self._slots = slots
        self.requests = WorkerRequestMetrics(MetricsRegistry()) if is_measured else None
        """Counters and timers of the methods; None without metrics."""
        self._evicted = self._refused = 0
        self._times: dict[str, tuple[list[int], float]] = {}
        self._errors: dict[tuple[str, ...], float] = {}

    def report(self, resident_bytes: int) -> bytes:
        """Return what was counted since the last report."""
        slots, evicted, refused = self._slots, self._evicted, self._refused
        self._evicted, self._refused = slots.evicted, slots.refused
        requests: dict[str, tuple[list[int], float]] = {}
        errors: dict[str, dict[str, float]] = {}
        if self.requests is not None:
            for (name,), durations in self.requests.times.values.items():
                counts, total = list(durations.counts), durations.total
                before, total_before = self._times.get(name, ([0] * len(counts), 0.0))
                if counts != before:
                    requests[name] = [new - old for new, old in zip(counts, before, strict=True)], total - total_before
                    self._times[name] = counts, total
            for labels, count in self.requests.errors.values.items():
                if count != self._errors.get(labels):
                    errors.setdefault(labels[0], {})[labels[1]] = count - self._errors.get(labels, 0)
                    self._errors[labels] = count
        return _encode(WorkerCounts(slots.evicted - evicted, slots.refused - refused, resident_bytes, requests, errors))


def add_counts(counts: WorkerCounts, requests: RequestMetrics | None, slots: ConnectionSlots[Any]) -> None:
    """Add the counts of a worker to the counts of the node."""
    slots.evicted += counts.evicted
    slots.refused += counts.refused
    if requests is None:
        return
    for name, (buckets, total) in counts.requests.items():
        requests.times.of(name).add(buckets, total)
    for name, by_code in counts.errors.items():
        for code, count in by_code.items():
            requests.errors.add(count, name, code)
