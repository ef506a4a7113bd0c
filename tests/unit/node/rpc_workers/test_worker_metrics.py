"""Tests that a node counts the requests of its workers."""

from __future__ import annotations

from typing import Any

from ophion.metrics.requests import RequestMetrics
from ophion.node.rpc_workers.node_state import NeedsNode
from ophion.node.rpc_workers.worker_metrics import CountReports, add_counts, decode_counts
from ophion.rpc.transport.connection_slots import ConnectionSlots
from ophion.runtime.metrics_registry import MetricsRegistry


def test_reports_have_only_what_is_new_and_add_up() -> None:
    slots: ConnectionSlots[Any] = ConnectionSlots("worker", 10)
    reports, total = CountReports(slots, is_measured=True), RequestMetrics(MetricsRegistry())
    of_node: ConnectionSlots[Any] = ConnectionSlots("node", 10)
    assert reports.requests is not None
    for count in (3, 0, 2):
        for _ in range(count):
            reports.requests.times.of("eth_call").record(0.25)
            reports.requests.note_error("eth_call", ValueError())
            reports.requests.note_error("eth_call", NeedsNode())
            slots.evicted += 1
        found = decode_counts(reports.report(5 << 20))
        assert sum(found.requests.get("eth_call", ([], 0))[0]) == count
        assert found.resident_bytes == 5 << 20
        add_counts(found, total, of_node)
    assert sum(total.times.of("eth_call").counts) == 5
    assert total.times.of("eth_call").total == 1.25
    assert total.errors.values == {("eth_call", "-32603"): 5}
    assert of_node.evicted == 5


def test_a_node_without_metrics_counts_connections_only() -> None:
    slots: ConnectionSlots[Any] = ConnectionSlots("worker", 10)
    reports = CountReports(slots, is_measured=False)
    assert reports.requests is None
    slots.refused = 2
    add_counts(decode_counts(reports.report(0)), None, slots)
    assert slots.refused == 4
