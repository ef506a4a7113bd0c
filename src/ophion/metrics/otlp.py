"""OpenTelemetry: sends metrics and one span per block to a collector (OTLP over HTTP, JSON encoding).

The standard `OTEL_*` variables configure the export. The trace id of a span is the first half of the block hash. So all
nodes that report to one collector share one trace per block. The trace shows when each node has imported the block.

Errors are logged once, and the data is sent again at the next interval. The node runs without the collector too.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from ophion.chain.chain import Chain
from ophion.chain.events import ChainEvent, Reorged
from ophion.primitives.types import Address
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.http_client import HttpClient, HttpError
from ophion.runtime.metric_category import Category
from ophion.runtime.metrics_registry import BUCKETS, Counter, DurationHistogram, Gauge, Labels, Metric, MetricsRegistry
from ophion.version import client_version

log = logging.getLogger(__name__)

_DEFAULT_INTERVAL_S: Final = 60.0
_EXPORT_TIMEOUT_S: Final = 10.0
_MAX_REPLY_BYTES: Final = 64 * 1024
_MAX_SPANS: Final = 2048
"""Maximum number of spans that wait for the next export. Above this limit, the oldest spans are dropped."""
_CUMULATIVE: Final = 2
_SPAN_KIND_INTERNAL: Final = 1
_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOL: Final = "http/json"
_EXPORTER: Final = "otlp"
_VISIBLE: Final = re.compile("[!-~]+")


class OtlpSettings(Struct, frozen=True):
    """Values of the `OTEL_*` variables."""

    metrics_url: str | None
    traces_url: str | None
    headers: dict[str, str] = {}
    resource: dict[str, str] = {}
    interval_s: float = _DEFAULT_INTERVAL_S


def read_otlp_settings(variables: Mapping[str, str]) -> OtlpSettings | None:
    """Return the settings, or None if no signal is exported. Raises `ValueError` for an invalid value."""
    if variables.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    urls = {signal: _url(variables, signal) for signal in ("metrics", "traces")}
    if not any(urls.values()):
        return None
    protocol = variables.get("OTEL_EXPORTER_OTLP_PROTOCOL", _PROTOCOL)
    if protocol != _PROTOCOL:
        raise ValueError(f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol} is not supported; set it to {_PROTOCOL}.")
    resource = {"service.name": "ophion", **_pairs(variables, "OTEL_RESOURCE_ATTRIBUTES")}
    if variables.get("OTEL_SERVICE_NAME"):
        resource["service.name"] = variables["OTEL_SERVICE_NAME"]
    interval = variables.get("OTEL_METRIC_EXPORT_INTERVAL", str(int(_DEFAULT_INTERVAL_S * 1000)))
    if not interval.isdecimal() or int(interval) < 100:
        raise ValueError(f"OTEL_METRIC_EXPORT_INTERVAL={interval} is not a number of milliseconds from 100 on.")
    headers = _pairs(variables, "OTEL_EXPORTER_OTLP_HEADERS")
    if not all(map(str.isascii, (*headers, *headers.values()))):
        raise ValueError("OTEL_EXPORTER_OTLP_HEADERS contains a character that is not ASCII.")
    return OtlpSettings(urls["metrics"], urls["traces"], headers, resource, int(interval) / 1000)


def _url(variables: Mapping[str, str], signal: str) -> str | None:
    """Return the URL of a signal: the value of the signal's own variable, or else the general variable plus the path of
    the signal. None if the signal is not exported.
    """
    name = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"
    base = variables.get(_ENDPOINT)
    url = variables.get(name) or (f"{base.rstrip('/')}/v1/{signal}" if base else None)
    exporter = variables.get(f"OTEL_{signal.upper()}_EXPORTER") or _EXPORTER
    if exporter not in (_EXPORTER, "none"):
        raise ValueError(f"OTEL_{signal.upper()}_EXPORTER={exporter} is not supported; set it to {_EXPORTER} or none.")
    if exporter == "none" or url is None:
        return None
    if not _is_http(url):
        raise ValueError(f"The OpenTelemetry endpoint {url} is not an http:// URL. Run a collector on this machine.")
    return url


def _is_http(url: str) -> bool:
    """Return whether a URL has the scheme http, a host and a valid port, and consists of visible ASCII characters."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises an error for a port out of range
    except ValueError:
        return False
    return parts.scheme == "http" and bool(parts.hostname) and _VISIBLE.fullmatch(url) is not None


def _pairs(variables: Mapping[str, str], name: str) -> dict[str, str]:
    """Read `key=value,key=value` with percent-encoded values."""
    found = {}
    for item in filter(None, (item.strip() for item in variables.get(name, "").split(","))):
        key, sign, value = item.partition("=")
        if not sign or not key.strip():
            raise ValueError(f"{name}: '{item}' is not key=value.")
        found[key.strip()] = unquote(value.strip())
        if not (key + found[key.strip()]).isprintable():
            raise ValueError(f"{name}: '{item}' contains a control character.")
    return found


class OtlpService:
    """Exports metrics and spans until it is cancelled."""

    name = "OpenTelemetry export"

    def __init__(
        self,
        settings: OtlpSettings,
        registry: MetricsRegistry,
        categories: frozenset[Category],
        chain: Chain,
        clock: Clock,
        entropy: Entropy,
        node: Address,
    ) -> None:
        self._registry = registry
        self._categories = categories
        self._chain = chain
        self._clock = clock
        self._entropy = entropy
        self._interval_s = settings.interval_s
        self._headers = {**settings.headers, "Content-Type": "application/json"}
        self._metrics = _client(settings.metrics_url)
        self._traces = _client(settings.traces_url)
        attributes = {"service.instance.id": f"0x{node.hex()}", **settings.resource}
        self._resource = {"attributes": _attributes(attributes)}
        self._scope = {"name": "ophion", "version": client_version()}
        self._started_at = _nanoseconds(clock.now())
        self._spans: deque[dict[str, Any]] = deque(maxlen=_MAX_SPANS)
        self._has_failed = False

    async def run(self, ready: Callable[[], None]) -> None:
        """Export at intervals, and once more when the service stops."""
        ignore_chain = self._chain.events.listen(self._on_chain_event) if self._traces is not None else None
        ready()
        try:
            while True:
                await asyncio.sleep(self._interval_s)
                await self._export()
        finally:
            if ignore_chain is not None:
                ignore_chain()
            await self._export()
            for client in (self._metrics, self._traces):
                if client is not None:
                    client.close()

    async def _export(self) -> None:
        if self._metrics is not None:
            await self._send(self._metrics, self.metrics_request())
        if self._traces is not None and self._spans:
            spans = list(self._spans)
            self._spans.clear()
            if not await self._send(self._traces, self.traces_request(spans)):
                self._spans.extendleft(reversed(spans))

    async def _send(self, client: HttpClient, request: dict[str, Any]) -> bool:
        try:
            reply = await client.request("POST", "", msgspec.json.encode(request), self._headers)
            if not 200 <= reply.status < 300:
                raise HttpError(f"status {reply.status}")
        except HttpError as error:
            if not self._has_failed:
                log.warning("OpenTelemetry export failed url=%s error=%s", client.url, error)
            self._has_failed = True
            return False
        self._has_failed = False
        return True

    # --- requests -------------------------------------------------------------------------------

    def metrics_request(self) -> dict[str, Any]:
        """Return an ExportMetricsServiceRequest in the JSON encoding."""
        at = _nanoseconds(self._clock.now())
        metrics = [
            {"name": name, "description": help, **self._data(metric, at)}
            for name, help, metric in self._registry.each(self._categories)
        ]
        scope = {"scope": self._scope, "metrics": [metric for metric in metrics if len(metric) > 2]}
        return {"resourceMetrics": [{"resource": self._resource, "scopeMetrics": [scope]}]}

    def _data(self, metric: Metric, at: str) -> dict[str, Any]:
        names = metric.label_names
        if isinstance(metric, Counter | Gauge):
            points = [self._number(names, labels, value, at) for labels, value in metric.values.items()]
            if not points:
                return {}
            if isinstance(metric, Gauge):
                return {"gauge": {"dataPoints": points}}
            return {"sum": {"dataPoints": points, "aggregationTemporality": _CUMULATIVE, "isMonotonic": True}}
        points = [self._histogram(names, labels, durations, at) for labels, durations in metric.values.items()]
        if not points:
            return {}
        return {"unit": "s", "histogram": {"dataPoints": points, "aggregationTemporality": _CUMULATIVE}}

    def _number(self, names: Labels, labels: Labels, value: float, at: str) -> dict[str, Any]:
        return {**self._point(names, labels, at), "asDouble": float(value)}

    def _histogram(self, names: Labels, labels: Labels, durations: DurationHistogram, at: str) -> dict[str, Any]:
        counts = durations.counts
        return {
            **self._point(names, labels, at),
            "count": str(sum(counts)),
            "sum": durations.total,
            "bucketCounts": [str(count) for count in counts],
            "explicitBounds": list(BUCKETS),
        }

    def _point(self, names: Labels, labels: Labels, at: str) -> dict[str, Any]:
        attributes = _attributes(dict(zip(names, labels, strict=True)))
        return {"attributes": attributes, "startTimeUnixNano": self._started_at, "timeUnixNano": at}

    def traces_request(self, spans: list[dict[str, Any]]) -> dict[str, Any]:
        """Return an ExportTraceServiceRequest in the JSON encoding."""
        scope = {"scope": self._scope, "spans": spans}
        return {"resourceSpans": [{"resource": self._resource, "scopeSpans": [scope]}]}

    def _on_chain_event(self, event: ChainEvent) -> None:
        """Record one span per block, from the block's timestamp to its import."""
        now = self._clock.now()
        for block in event.added if isinstance(event, Reorged) else event.blocks:
            header = block.header
            attributes = {
                "ethereum.block.number": str(header.number),
                "ethereum.block.hash": f"0x{header.hash.hex()}",
                "ethereum.block.gas_used": str(header.header.gas_used),
                "ethereum.block.transactions": str(block.body.transaction_count),
            }
            self._spans.append(
                {
                    "traceId": header.hash[:16].hex(),
                    "spanId": self._entropy.token(8).hex(),
                    "name": "block",
                    "kind": _SPAN_KIND_INTERNAL,
                    "startTimeUnixNano": _nanoseconds(min(header.timestamp, now)),
                    "endTimeUnixNano": _nanoseconds(now),
                    "attributes": _attributes(attributes),
                }
            )


def _client(url: str | None) -> HttpClient | None:
    if url is None:
        return None
    return HttpClient(url, timeout_s=_EXPORT_TIMEOUT_S, max_reply_bytes=_MAX_REPLY_BYTES)


def _attributes(values: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]


def _nanoseconds(at: float) -> str:
    """Return a Unix time in nanoseconds, as text, because the JSON encoding writes 64-bit numbers as strings."""
    return str(int(at * 1_000_000) * 1000)
