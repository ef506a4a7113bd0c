"""Tests metrics as Prometheus text and as a nested object."""

from __future__ import annotations

import pytest

from ophion.runtime.metric_category import Category
from ophion.runtime.metrics_registry import DurationHistogram, MetricsRegistry

EVERYTHING = frozenset(Category)


def test_counters_gauges_and_timers_are_shown_as_prometheus_text() -> None:
    registry = MetricsRegistry()
    added = registry.counter(Category.TRANSACTION_POOL, "transactions_added_total", "Added.", "source")
    registry.gauge(Category.ETHEREUM, "blockchain_height", "Height.").watch(lambda: 12)
    timer = registry.timer(Category.RPC, "request_time", "Time.", "methodName")
    added.add(2, "local")
    added.add(1, "local")
    timer.record(0.02, "eth_call")
    timer.record(20, "eth_call")
    lines = registry.text(EVERYTHING).splitlines()
    assert "# TYPE ophion_transaction_pool_transactions_added_total counter" in lines
    assert 'ophion_transaction_pool_transactions_added_total{source="local"} 3' in lines
    assert "ethereum_blockchain_height 12" in lines
    assert 'ophion_rpc_request_time_bucket{methodName="eth_call",le="0.025"} 1' in lines
    assert 'ophion_rpc_request_time_bucket{methodName="eth_call",le="+Inf"} 2' in lines
    assert 'ophion_rpc_request_time_sum{methodName="eth_call"} 20.02' in lines
    assert 'ophion_rpc_request_time_count{methodName="eth_call"} 2' in lines


def test_categories_and_names_choose_what_is_shown() -> None:
    registry = MetricsRegistry()
    registry.gauge(Category.ETHEREUM, "peer_count", "Peers.").watch(lambda: 0)
    registry.gauge(Category.ETHEREUM, "peer_limit", "Most peers.").watch(lambda: 25)
    assert registry.text(frozenset({Category.RPC})) == ""
    assert "peer_count" not in registry.text(EVERYTHING, ["ethereum_peer_limit"])


def test_labels_become_levels_of_the_nested_object() -> None:
    registry = MetricsRegistry()
    registry.counter(Category.PEERS, "disconnected_total", "Gone.", "initiator", "reason").add(5, "remote", "USELESS")
    registry.counter(Category.PEERS, "connected_total", "Here.")
    registry.timer(Category.RPC, "request_time", "Time.", "methodName").record(0.001, "eth_call")
    nested = registry.nested()
    assert nested["peers"] == {"disconnected_total": {"remote": {"USELESS": 5}}}
    timer = nested["rpc"]
    assert isinstance(timer, dict)
    request_time = timer["request_time"]
    assert isinstance(request_time, dict)
    call = request_time["eth_call"]
    assert isinstance(call, dict)
    assert (call["count"], call["sum"]) == (1, 0.001)


def test_a_label_value_cannot_break_the_text() -> None:
    registry = MetricsRegistry()
    registry.counter(Category.RPC, "odd_total", "Odd.", "name").add(1, 'a"b\\c\nd')
    assert '{name="a\\"b\\\\c\\nd"} 1' in registry.text(EVERYTHING)


def test_a_metric_is_declared_once() -> None:
    registry = MetricsRegistry()
    registry.counter(Category.RPC, "x_total", "X.")
    with pytest.raises(ValueError, match="declared twice"):
        registry.gauge(Category.RPC, "x_total", "X.")


def test_numbers_are_written_in_full() -> None:
    registry = MetricsRegistry()
    values = [1_700_000_000.25, 2**70, float("inf"), 0.1, -3]
    gauge = registry.gauge(Category.PROCESS, "x", "X.", "n")
    for number, value in enumerate(values):
        gauge.watch(lambda value=value: value, str(number))  # type: ignore[misc]
    shown = [line.split()[1] for line in registry.text(EVERYTHING).splitlines() if line[0] != "#"]
    assert shown == ["1700000000.25", str(2**70), "+Inf", "0.1", "-3"]


def test_gauges_and_counters_are_shown_under_the_name_dashboards_know() -> None:
    registry = MetricsRegistry()
    registry.gauge(Category.BLOCKCHAIN, "difficulty_total", "Difficulty.").watch(lambda: 5)
    registry.timer(Category.RPC, "request_time", "Time.", "methodName").record(1, "x")
    assert "besu_blockchain_difficulty_total 5" in registry.text(EVERYTHING)
    assert "besu_rpc_request_time" not in registry.text(EVERYTHING)
    assert registry.text(EVERYTHING, ["besu_blockchain_difficulty_total"]).count("difficulty_total 5") == 1
    assert registry.families()["besu_blockchain_difficulty_total"] == "gauge"


def test_a_counter_can_be_watched() -> None:
    registry = MetricsRegistry()
    registry.counter(Category.RPC, "refused_total", "Refused.", "service").watch(lambda: 7, "ws")
    assert 'ophion_rpc_refused_total{service="ws"} 7' in registry.text(EVERYTHING)
    assert registry.nested() == {"rpc": {"refused_total": {"ws": 7}}}


def test_a_timer_that_never_ran_is_not_shown() -> None:
    registry = MetricsRegistry()
    timer = registry.timer(Category.RPC, "request_time", "Time.", "methodName")
    timer.of("eth_call")
    assert registry.nested() == {}
    assert "eth_call" not in registry.text(EVERYTHING)


def test_one_timed_duration_stands_for_those_that_were_only_counted() -> None:
    durations = DurationHistogram()
    assert durations.untimed == 0, "the first is timed"
    durations.sample(0.00001)
    assert (sum(durations.counts), durations.total) == (1, 0.00001)
    durations.untimed -= 5
    assert sum(durations.counts) == 6, "all are counted whenever somebody looks"
    durations.untimed = 0
    durations.sample(0.00002)
    assert sum(durations.counts) == 17
    assert durations.total == pytest.approx(0.00001 * 6 + 0.00002 * 11)
    durations.record(1.0)
    assert sum(durations.counts) == 18


def test_what_takes_long_is_timed_every_time() -> None:
    durations = DurationHistogram()
    for _ in range(3):
        durations.sample(0.001)
        assert durations.untimed == 0
    assert (sum(durations.counts), durations.total) == (3, pytest.approx(0.003))
