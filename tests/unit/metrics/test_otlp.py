"""Tests OpenTelemetry export: settings, and requests that the official definitions accept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ophion.metrics.otlp import OtlpService, OtlpSettings, read_otlp_settings
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.metric_category import Category
from ophion.runtime.metrics_registry import MetricsRegistry
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction

ALL = frozenset(Category)


def test_without_an_endpoint_nothing_is_exported() -> None:
    assert read_otlp_settings({}) is None
    assert read_otlp_settings({"OTEL_SERVICE_NAME": "a"}) is None
    disabled = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}
    assert read_otlp_settings(disabled) is None


def test_variables_are_read() -> None:
    settings = read_otlp_settings(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t:1/spans",
            "OTEL_EXPORTER_OTLP_HEADERS": "a=1, b=x%20y",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
            "OTEL_SERVICE_NAME": "node one",
            "OTEL_METRIC_EXPORT_INTERVAL": "2500",
        }
    )
    assert settings == OtlpSettings(
        "http://c:4318/v1/metrics",
        "http://t:1/spans",
        {"a": "1", "b": "x y"},
        {"service.name": "node one", "deployment.environment": "test"},
        2.5,
    )
    only_metrics = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}
    assert (read_otlp_settings(only_metrics) or settings).traces_url is None


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c", "not an http:// URL"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:99999", "not an http:// URL"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c d:4318", "not an http:// URL"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://[::1:4318", "not an http:// URL"),
        ("OTEL_METRICS_EXPORTER", "prometheus", "OTEL_METRICS_EXPORTER=prometheus is not supported"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b%0D%0Ac", "control character"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=\u00e4", "not ASCII"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "set it to http/json"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "soon", "milliseconds"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a", "not key=value"),
    ],
)
def test_values_that_cannot_be_used_are_one_error(name: str, value: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_otlp_settings({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", name: value})


class Collector:
    """A server that stores the requests of the export."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, Any]]] = []
        self.status = b"200 OK"
        self.refused = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            length = 0
            while (header := await reader.readline()) != b"\r\n":
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            body = await reader.readexactly(length)
            if self.status.startswith(b"200"):
                self.received.append((line.split()[1].decode(), json.loads(body)))
            else:
                self.refused += 1
            writer.write(b"HTTP/1.1 %b\r\nContent-Length: 2\r\n\r\n{}" % self.status)
        writer.close()


def _registry() -> MetricsRegistry:
    registry = MetricsRegistry()
    registry.counter(Category.RPC, "errors_total", "Errors.", "code").add(3, "-32000")
    registry.gauge(Category.ETHEREUM, "height", "The head.").watch(lambda: 7)
    registry.timer(Category.RPC, "time", "Seconds.", "method").record(0.02, "eth_call")
    registry.timer(Category.RPC, "nothing", "Seconds.", "method")
    return registry


async def _until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within 30 s")


async def _exported(node: TestCore, collector: Collector) -> None:
    server = await asyncio.start_server(collector.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = read_otlp_settings(
        {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_METRIC_EXPORT_INTERVAL": "100"}
    )
    assert settings is not None
    service = OtlpService(settings, _registry(), ALL, node.chain, node.clock, SystemEntropy(), bytes(20))
    collector.status = b"503 Busy"
    task = asyncio.create_task(service.run(lambda: None))
    mining = asyncio.create_task(node.mining.run(lambda: None))
    await asyncio.sleep(0)
    node.mining.start()
    await node.send(legacy_transaction(DEV_KEYS[0], 0))
    await _until(lambda: node.queries.head_number == 1)
    await _until(lambda: collector.refused > 2)
    collector.status = b"200 OK"
    await _until(lambda: {path for path, _ in collector.received} == {"/v1/metrics", "/v1/traces"})
    for one in (task, mining):
        one.cancel()
    await asyncio.gather(task, mining, return_exceptions=True)
    server.close()


def test_metrics_and_spans_reach_a_collector_that_was_away(tmp_path: Path) -> None:
    collector = Collector()
    with open_core(tmp_path) as node:
        asyncio.run(_exported(node, collector))
        head = node.chain.head
    metrics = next(body for path, body in collector.received if path == "/v1/metrics")
    traces = next(body for path, body in collector.received if path == "/v1/traces")
    found = {one["name"]: one for one in metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]}
    assert found["ethereum_height"]["gauge"]["dataPoints"][0]["asDouble"] == 7
    assert found["ophion_rpc_errors_total"]["sum"]["dataPoints"][0]["asDouble"] == 3
    histogram = found["ophion_rpc_time"]["histogram"]["dataPoints"][0]
    assert (histogram["count"], len(histogram["bucketCounts"])) == ("1", len(histogram["explicitBounds"]) + 1)
    assert "ophion_rpc_nothing" not in found
    (span,) = traces["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert span["traceId"] == head.hash[:16].hex()
    assert int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"])


def test_the_official_definitions_accept_the_requests(tmp_path: Path) -> None:
    reason = "opentelemetry-proto is not installed"
    service_v1 = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2", reason=reason)
    json_format = pytest.importorskip("google.protobuf.json_format", reason=reason)
    with open_core(tmp_path) as node:

        async def request() -> dict[str, Any]:
            settings = OtlpSettings("http://c:1", None)
            service = OtlpService(settings, _registry(), ALL, node.chain, node.clock, SystemEntropy(), bytes(20))
            return service.metrics_request()

        text = json.dumps(asyncio.run(request()))
    parsed = json_format.Parse(text, service_v1.ExportMetricsServiceRequest())
    metrics = parsed.resource_metrics[0].scope_metrics[0].metrics
    assert [metric.WhichOneof("data") for metric in metrics] == ["sum", "gauge", "histogram"]
    assert metrics[2].histogram.data_points[0].count == 1
