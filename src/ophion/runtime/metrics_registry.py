"""Counters, gauges and timers, shown as Prometheus text or as the nested object of `debug_metrics`.

A metric has a category and a name. A metric with labels is a family with one value per combination of label values.
Values set with `watch` are read only when they are shown. A registry belongs to one node; there is no global registry.

Gauges and counters with the node's prefix are also shown with the prefix `besu_`, for existing dashboards.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from ophion.runtime.metric_category import Category

PREFIX = "ophion_"
ALIAS_PREFIX = "besu_"
NESTED_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Upper bounds of the buckets that `debug_metrics` shows, in seconds (json-rpc.md 5.9)."""
BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, *NESTED_BUCKETS)
"""Upper bounds of the timers' buckets in seconds. Most requests take less than the smallest bucket of Besu 21.10."""

Labels: TypeAlias = tuple[str, ...]
Nested: TypeAlias = "dict[str, Nested | float]"

_UNTIMED = 15
"""After a timed event in the smallest bucket, this many events are only counted."""
_WIDEST = 2**53
_UNPREFIXED = frozenset({Category.ETHEREUM, Category.PROCESS, Category.JVM, Category.PYTHON})


class Counter:
    """A value that only increases."""

    kind = "counter"

    def __init__(self, label_names: Labels) -> None:
        self.label_names = label_names
        self._counts: dict[Labels, float] = {}
        self._sources: dict[Labels, Callable[[], float]] = {}
        self._table: Callable[[], Mapping[Labels, float]] | None = None

    def watch(self, source: Callable[[], float], *labels: str) -> None:
        """Read the value from this source whenever the metric is shown."""
        self._sources[labels] = source

    def watch_table(self, source: Callable[[], Mapping[Labels, float]]) -> None:
        """Read all values from one source when the metric is shown. Suits labels that are not known in advance."""
        self._table = source

    @property
    def values(self) -> dict[Labels, float]:
        table = {} if self._table is None else self._table()
        return {**self._counts, **table, **{labels: source() for labels, source in self._sources.items()}}

    def add(self, amount: float = 1, *labels: str) -> None:
        """Add to the counter. Labels are in the declared order."""
        self._counts[labels] = self._counts.get(labels, 0) + amount

    def samples(self) -> Iterator[tuple[str, Labels, str, float]]:
        for labels, value in self.values.items():
            yield "", labels, "", value

    def nested(self, labels: Labels) -> Nested | float:
        return self.values[labels]


class Gauge:
    """A value that goes up and down."""

    kind = "gauge"

    def __init__(self, label_names: Labels) -> None:
        self.label_names = label_names
        self._sources: dict[Labels, Callable[[], float]] = {}

    def watch(self, source: Callable[[], float], *labels: str) -> None:
        """Read the value from this source whenever the metric is shown."""
        self._sources[labels] = source

    @property
    def values(self) -> dict[Labels, float]:
        return {labels: source() for labels, source in self._sources.items()}

    def samples(self) -> Iterator[tuple[str, Labels, str, float]]:
        for labels, source in self._sources.items():
            yield "", labels, "", source()

    def nested(self, labels: Labels) -> Nested | float:
        return self._sources[labels]()


class DurationHistogram:
    """Histogram of durations.

    For events of microseconds, reading the clock would take longer than the event. So callers time one event in sixteen
    and only count the other fifteen (`untimed`). The timed event represents all sixteen.
    """

    __slots__ = ("_buckets", "_last", "_share", "_total", "untimed")

    def __init__(self) -> None:
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._total = 0.0
        self._last = 0.0
        self._share = 0
        self.untimed = 0
        """Number of events to count without timing before the next timed event."""

    def record(self, seconds: float) -> None:
        """Record one duration."""
        self._add(seconds, 1)

    def sample(self, seconds: float) -> None:
        """Record a sampled duration, weighted by the events that were skipped."""
        self._add(seconds, self._share - self.untimed + 1)
        self._last = seconds
        # after a long event, measure the next event too: reading the clock costs little compared with a long event
        self._share = self.untimed = _UNTIMED if seconds <= BUCKETS[0] else 0

    def add(self, counts: Sequence[int], total: float) -> None:
        """Add the durations of another process: events per bucket, and the sum in seconds."""
        self._buckets = [own + other for own, other in zip(self._buckets, counts, strict=True)]
        self._total += total

    @property
    def counts(self) -> list[int]:
        """Return the number of events per bucket, including skipped events."""
        self._settle()
        return self._buckets

    @property
    def total(self) -> float:
        """Return the sum of all durations in seconds."""
        self._settle()
        return self._total

    def _settle(self) -> None:
        """Count the skipped events as if each took as long as the sample."""
        self._add(self._last, self._share - self.untimed)
        self._share = self.untimed

    def _add(self, seconds: float, count: int) -> None:
        self._buckets[bisect_left(BUCKETS, seconds)] += count
        self._total += seconds * count

    def cumulative(self) -> Iterator[tuple[str, int]]:
        running = 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            running += count
            yield bound, running


class Timer:
    """A histogram of durations with labels."""

    kind = "histogram"

    def __init__(self, label_names: Labels) -> None:
        self.label_names = label_names
        self.values: dict[Labels, DurationHistogram] = {}

    def record(self, seconds: float, *labels: str) -> None:
        """Record one duration."""
        self.of(*labels).record(seconds)

    def watch(self, durations: DurationHistogram, *labels: str) -> None:
        """Show durations that another component records."""
        self.values[labels] = durations

    def of(self, *labels: str) -> DurationHistogram:
        """Return the histogram of one combination of labels, for frequent recording."""
        durations = self.values.get(labels)
        if durations is None:
            durations = self.values[labels] = DurationHistogram()
        return durations

    def samples(self) -> Iterator[tuple[str, Labels, str, float]]:
        for labels, durations in self.values.items():
            count = 0
            if not durations.total:
                continue  # the metric is declared, but has no samples yet
            for bound, count in durations.cumulative():
                yield "_bucket", labels, f'le="{bound}"', count
            yield "_sum", labels, "", durations.total
            yield "_count", labels, "", count

    def nested(self, labels: Labels) -> Nested | float:
        durations = self.values[labels]
        buckets: Nested = {bound: count for bound, count in durations.cumulative() if bound in _NESTED_BOUNDS}
        return {"bucket": buckets, "count": sum(durations.counts), "sum": durations.total}


_NESTED_BOUNDS = frozenset((*map(str, NESTED_BUCKETS), "+Inf"))

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
        """Return the chosen categories, or only their families with these names, in Prometheus text format 0.0.4."""
        lines: list[str] = []
        for (category, name), (help, metric) in self._metrics.items():
            if category not in categories:
                continue
            shown = [family for family in family_names(category, name, metric.kind) if not names or family in names]
            if not shown:
                continue
            samples = [
                (suffix + _label_text(metric, labels, extra), value)
                for suffix, labels, extra, value in metric.samples()
            ]
            for family in shown:
                lines.append(f"# HELP {family} {help}")
                lines.append(f"# TYPE {family} {metric.kind}")
                lines += [f"{family}{label} {_number(value)}" for label, value in samples]
        return "\n".join(lines) + "\n" if lines else ""

    def each(self, categories: frozenset[Category]) -> Iterator[tuple[str, str, Metric]]:
        """Yield name, help and metric of each family of the chosen categories."""
        for (category, name), (help, metric) in self._metrics.items():
            if category in categories:
                yield full_name(category, name), help, metric

    def families(self) -> dict[str, str]:
        """Return the kind of every metric family, by the name of the family."""
        return {
            family: metric.kind
            for (category, name), (_, metric) in self._metrics.items()
            for family in family_names(category, name, metric.kind)
        }

    def nested(self) -> Nested:
        """Return the object of `debug_metrics`, nested by category, name and labels. Omits metrics without values."""
        tree: Nested = {}
        for (category, name), (_, metric) in self._metrics.items():
            for labels in metric.values:
                if isinstance(metric, Timer) and not metric.values[labels].total:
                    continue
                place = tree
                for step in (category.value, name, *labels)[:-1]:
                    below = place.setdefault(step, {})
                    assert isinstance(below, dict)
                    place = below
                value = metric.nested(labels)
                if isinstance(value, int) and value > _WIDEST:
                    # convert a large integer to a float, because JSON clients do not read all of its digits
                    value = float(value)
                place[(category.value, name, *labels)[-1]] = value
        return tree


def full_name(category: Category, name: str) -> str:
    """Return the family name in Prometheus."""
    prefix = "" if category in _UNPREFIXED else PREFIX
    return f"{prefix}{category.value}_{name}"


def family_names(category: Category, name: str, kind: str) -> tuple[str, ...]:
    """Return all names under which a family is shown."""
    family = full_name(category, name)
    if category in _UNPREFIXED or kind == Timer.kind:
        return (family,)
    return family, ALIAS_PREFIX + family.removeprefix(PREFIX)


def _label_text(metric: Metric, labels: Labels, extra: str) -> str:
    pairs = [f'{key}="{_escaped(text)}"' for key, text in zip(metric.label_names, labels, strict=True)]
    if extra:
        pairs.append(extra)
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _number(value: float) -> str:
    """Format a number for Prometheus; integers of any size have no decimal point."""
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
