"""Work that outlives the connection it came from: a block on its way into the chain stays on its way when its sender
leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """A bounded number of tasks that live as long as the service that runs them. A failure is the service's own."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._group: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, ready: Callable[[], None]) -> None:
        """Run tasks until cancelled; raises what a task raised, as it is."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                try:
                    ready()
                    await asyncio.get_running_loop().create_future()
                finally:
                    self._group = None
                    for task in tuple(self._running):
                        task.cancel()
        except BaseExceptionGroup as failures:
            # several may fail for one reason, a full disk: the operator is told once
            raise failures.exceptions[0] from None

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        """Begin a task; False, and the work is closed, when there are too many or the service has stopped."""
        if self._group is None or len(self._running) >= self._limit:
            work.close()
            return False
        task = self._group.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return True
