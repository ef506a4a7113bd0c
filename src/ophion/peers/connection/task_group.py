"""`ConnectionTasks`: the tasks that end with a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

MAX_TASKS: Final = 16
"""Limit of concurrent tasks per peer."""


class ConnectionTasks:
    """Tasks of one peer's connection, at most `MAX_TASKS`."""

    __slots__ = ("_children", "_group")

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._children: set[asyncio.Task[None]] = set()

    @property
    def is_running(self) -> bool:
        return self._group is not None

    def start(self, group: asyncio.TaskGroup) -> None:
        """Set the task group in which `spawn` creates tasks."""
        self._group = group

    def stop(self) -> None:
        """Make `spawn` refuse new tasks."""
        self._group = None

    def spawn(self, work: Coroutine[Any, Any, None], fail: Callable[[Exception], None]) -> bool:
        """Start a task. If the task raises, call `fail` with the exception. Returns False after `stop`, or for too many
        tasks.
        """
        if self._group is None or len(self._children) >= MAX_TASKS:
            work.close()
            return False
        task = self._group.create_task(_guarded(work, fail))
        self._children.add(task)
        task.add_done_callback(self._children.discard)
        # a task that is cancelled before its first step never starts its coroutine: close the coroutine then
        task.add_done_callback(lambda _: work.close())
        return True

    def cancel(self) -> None:
        """Cancel all tasks of the peer."""
        for task in tuple(self._children):
            task.cancel()


async def _guarded(work: Coroutine[Any, Any, None], fail: Callable[[Exception], None]) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001  # an error ends only this connection
        fail(error)
