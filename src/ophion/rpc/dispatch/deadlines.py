"""Request timeouts. One timer serves all requests of a dispatcher, because all requests have the same timeout."""

from __future__ import annotations

import asyncio
from typing import Final

from ophion.rpc.errors import NULL, TIMEOUT_EXPIRED, failure
from ophion.rpc.transport.replies import REQUEST_TIMEOUT, Answer, Complete, PendingReply

_TIMEOUT_ANSWER: Final = Answer(REQUEST_TIMEOUT, (failure(NULL, TIMEOUT_EXPIRED()),))


class Deadlines:
    """The waiting requests, in the order of their deadlines."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout_s: float) -> None:
        self._loop = loop
        self._timeout_s = timeout_s
        self._waiting: dict[PendingReply[Complete], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, pending: PendingReply[Complete]) -> None:
        """Start the timeout of a request, if the request has a timeout."""
        if not pending.has_timeout:
            return
        self._waiting[pending] = self._loop.time() + self._timeout_s
        pending.forget = self._forget
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_s, self._expire)

    def close(self) -> None:
        """Cancel every request that waits for its result."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for pending in tuple(self._waiting):
            pending.abandon()
        self._waiting.clear()

    def _forget(self, pending: PendingReply[Complete]) -> None:
        self._waiting.pop(pending, None)

    def _expire(self) -> None:
        now = self._loop.time()
        self._timer = None
        for pending, deadline in tuple(self._waiting.items()):
            if deadline > now:
                self._timer = self._loop.call_later(deadline - now, self._expire)
                return
            pending.cut_short(_TIMEOUT_ANSWER)
