"""Counters, gauges and timers, declared once and shown as Prometheus text or as the nested object of `debug_metrics`.

A metric has a category and a name; with labels it is a family with one value per combination of label values. Gauges
usually ask when shown (`watch`), so that keeping them costs nothing. A registry belongs to one node; there is no
global one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import TypeAlias, TypeVar

PREFIX = "ophion_"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Upper bounds of the timers' buckets in seconds (json-rpc.md 5.9)."""

Labels: TypeAlias = tuple[str, ...]
Nested: TypeAlias = "dict[str, Nested | float]"


class Category(Enum):
    """What a metric is about; each can be switched off."""

    BLOCKCHAIN = "blockchain"
    ETHEREUM = "ethereum"
    EXECUTORS = "executors"
    NETWORK = "network"
    PEERS = "peers"
    PERMISSIONING = "permissioning"
    PROCESS = "process"
    PRUNER = "pruner"
    RPC = "rpc"
    SYNCHRONIZER = "synchronizer"
    TRANSACTION_POOL = "transaction_pool"
    JVM = "jvm"
    KVSTORE_ROCKSDB = "kvstore_rocksdb"
    KVSTORE_ROCKSDB_STATS = "kvstore_rocksdb_stats"


_UNPREFIXED = frozenset({Category.ETHEREUM, Category.PROCESS, Category.JVM})


class Counter:
    """Something that only grows."""

    kind = "counter"

    def __init__(self, label_names: Labels) -> None:
        self.label_names = label_names
        self.values: dict[Labels, float] = {}

    def add(self, amount: float = 1, *labels: str) -> None:
        """Count; the labels stand in the declared order."""
        self.values[labels] = self.values.get(labels, 0) + amount

    def samples(self) -> Iterator[tuple[str, Labels, str, float]]:
        for labels, value in self.values.items():
            yield "", labels, "", value

    def nested(self, labels: Labels) -> Nested | float:
        return self.values[labels]


class Gauge:
    """Something that has a value now."""

    kind = "gauge"

    def __init__(self, label_names: Labels) -> None:
        self.label_names = label_names
        self._sources: dict[Labels, Callable[[], float]] = {}

    def watch(self, source: Callable[[], float], *labels: str) -> None:
        """Ask this source whenever the value is shown."""
        self._sources[labels] = source

    @property
    def values(self) -> dict[Labels, float]:
        return {labels: source() for labels, source in self._sources.items()}

    def samples(self) -> Iterator[tuple[str, Labels, str, float]]:
        for labels, source in self._sources.items():
            yield "", labels, "", source()

    def nested(self, labels: Labels) -> Nested | float:
        return self._sources[labels]()


class _Durations:
    """How long something took, by bucket."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def cumulative(self) -> Iterator[tuple[str, int]]:
        running = 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            running += count
            yield bound, running


class Timer:
    """How long something takes, as a histogram."""

    kind = "histogram"

    def __init__(self, label_names: Labels) -> None:
        self.label_names = label_names
        self.values: dict[Labels, _Durations] = {}

    def record(self, seconds: float, *labels: str) -> None:
        """Note one duration."""
        durations = self.values.get(labels)
        if durations is None:
            durations = self.values[labels] = _Durations()
        durations.counts[bisect_left(BUCKETS, seconds)] += 1
        durations.total += seconds

    def samples(self) -> Iterator[tuple[str, Labels, str, float]]:
        for labels, durations in self.values.items():
            count = 0
            for bound, count in durations.cumulative():
                yield "_bucket", labels, f'le="{bound}"', count
            yield "_sum", labels, "", durations.total
            yield "_count", labels, "", count

    def nested(self, labels: Labels) -> Nested | float:
        durations = self.values[labels]
        buckets: Nested = dict(durations.cumulative())
        return {"bucket": buckets, "count": sum(durations.counts), "sum": durations.total}


Metric: TypeAlias = Counter | Gauge | Timer
MetricT = TypeVar("MetricT", Counter, Gauge, Timer)


class MetricsRegistry:
    """Every metric of one node."""

    def __init__(self) -> None:
        self._metrics: dict[tuple[Category, str], tuple[str, Metric]] = {}

    def counter(self, category: Category, name: str, help: str, *labels: str) -> Counter:
        return self._declare(category, name, help, Counter(labels))

    def gauge(self, category: Category, name: str, help: str, *labels: str) -> Gauge:
        return self._declare(category, name, help, Gauge(labels))

    def timer(self, category: Category, name: str, help: str, *labels: str) -> Timer:
        return self._declare(category, name, help, Timer(labels))

    def _declare(self, category: Category, name: str, help: str, metric: MetricT) -> MetricT:
        key = (category, name)
        if key in self._metrics:
            raise ValueError(f"the metric {category.value}_{name} is declared twice")
        self._metrics[key] = (help, metric)
        return metric

    def text(self, categories: frozenset[Category], names: Sequence[str] = ()) -> str:
        """Prometheus text format 0.0.4 of the chosen categories, or of the named families only."""
        lines: list[str] = []
        for (category, name), (help, metric) in self._metrics.items():
            family = full_name(category, name)
            if category not in categories or (names and family not in names):
                continue
            lines.append(f"# HELP {family} {help}")
            lines.append(f"# TYPE {family} {metric.kind}")
            for suffix, labels, extra, value in metric.samples():
                pairs = [f'{key}="{_escaped(text)}"' for key, text in zip(metric.label_names, labels, strict=True)]
                if extra:
                    pairs.append(extra)
                shown = f"{{{','.join(pairs)}}}" if pairs else ""
                lines.append(
                    f"{family}{suffix}{shown} {value:g}" if value % 1 else f"{family}{suffix}{shown} {value:.0f}"
                )
        return "\n".join(lines) + "\n" if lines else ""

    def nested(self) -> Nested:
        """Category, name, then one level per label, as `debug_metrics` answers; metrics without values are left out."""
        tree: Nested = {}
        for (category, name), (_, metric) in self._metrics.items():
            for labels in metric.values:
                place = tree
                for step in (category.value, name, *labels)[:-1]:
                    below = place.setdefault(step, {})
                    assert isinstance(below, dict)
                    place = below
                place[(category.value, name, *labels)[-1]] = metric.nested(labels)
        return tree


def full_name(category: Category, name: str) -> str:
    """The family name that Prometheus sees."""
    prefix = "" if category in _UNPREFIXED else PREFIX
    return f"{prefix}{category.value}_{name}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
