"""Pending requests of other enclaves and of tools: a bounded number of tasks. A task is cancelled when its client
disconnects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ophion.rpc.transport.http.messages import Response
from ophion.rpc.transport.replies import PendingReply


class PendingRequests:
    """The pending requests of one HTTP port of the enclave."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self._most = most
        self._open: set[PendingReply[Response]] = set()

    @property
    def is_full(self) -> bool:
        """Whether the number of pending requests has reached the limit."""
        return len(self._open) >= self._most

    def begin(self, work: Coroutine[Any, Any, Response]) -> PendingReply[Response]:
        """Run `work` as a task and return its pending response. `work` must not raise, but return an error response."""
        task = self._loop.create_task(work)
        pending: PendingReply[Response] = PendingReply(task.cancel)
        self._open.add(pending)

        def finish(done: asyncio.Task[Response]) -> None:
            self._open.discard(pending)
            if not done.cancelled() and not pending.is_done:
                pending.resolve(done.result())

        task.add_done_callback(finish)
        return pending

    def close(self) -> None:
        """Cancel pending requests."""
        for pending in tuple(self._open):
            pending.abandon()
