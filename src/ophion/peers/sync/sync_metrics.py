"""Counters and durations of synchronisation, for metrics."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ophion.runtime.metrics_registry import DurationHistogram

TASKS: Final = ("ancestor", "posts", "headers", "bodies", "import")


class SyncMetrics:
    """Counters and durations of synchronisation since the node started."""

    def __init__(self) -> None:
        self.tasks = {name: DurationHistogram() for name in TASKS}
        """Durations of requests and imports, including failed requests and imports."""
        self.processed: Counter[tuple[str, ...]] = Counter()
        """Number of headers, bodies and blocks that were `added` to or `removed` from the queue between download and
        import.
        """
        self.restarts: Counter[str] = Counter()
        """Number of failed sync cycles, by reason."""

    @contextmanager
    def timed(self, task: str) -> Iterator[None]:
        """Record the duration of the `with` block for a task (a request or an import)."""
        now = asyncio.get_running_loop().time
        began = now()
        try:
            yield
        finally:
            self.tasks[task].record(now() - began)
