"""What synchronisation has done so far: for metrics."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ophion.runtime.metrics import Durations

TASKS: Final = ("ancestor", "posts", "headers", "bodies", "import")


class SyncFigures:
    """Counted since the node started."""

    def __init__(self) -> None:
        self.tasks = {name: Durations() for name in TASKS}
        """How long requests and imports took, those that failed included."""
        self.processed: Counter[tuple[str, ...]] = Counter()
        """Headers, bodies and blocks `added` to what lies between download and import, and `removed` again."""
        self.restarts: Counter[str] = Counter()
        """Cycles that broke off, by the reason."""

    @contextmanager
    def timed(self, task: str) -> Iterator[None]:
        """Note how long this takes."""
        now = asyncio.get_running_loop().time
        began = now()
        try:
            yield
        finally:
            self.tasks[task].record(now() - began)
