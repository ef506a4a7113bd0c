"""Requests of other enclaves and of tools that wait: a bounded number of them, each a task that its client can end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ophion.rpc.transport.http.messages import Response
from ophion.rpc.transport.replies import Pending


class OpenRequests:
    """What one port works on."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self._most = most
        self._open: set[Pending[Response]] = set()

    @property
    def is_full(self) -> bool:
        """Whether nobody else is let in."""
        return len(self._open) >= self._most

    def begin(self, work: Coroutine[Any, Any, Response]) -> Pending[Response]:
        """The answer that this work gives, which never fails."""
        task = self._loop.create_task(work)
        pending: Pending[Response] = Pending(task.cancel)
        self._open.add(pending)

        def finish(done: asyncio.Task[Response]) -> None:
            self._open.discard(pending)
            if not done.cancelled() and not pending.is_done:
                pending.resolve(done.result())

        task.add_done_callback(finish)
        return pending

    def close(self) -> None:
        """Give up what is still waiting."""
        for pending in tuple(self._open):
            pending.abandon()
