"""Memory limit for long GraphQL responses.

A response that is being built counts as a response of maximum size. A finished response counts with its actual size
until the client has received it and the last reference is gone. Requests above the limit wait in order of arrival, so
that later requests of a client cannot block its first request.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections import deque
from typing import Final

from ophion.native.graphql import GraphqlText
from ophion.runtime.thread_pools import LaneFull

_MAX_WAITING: Final = 1024


class ResponseBuffer:
    """The memory that all responses of one service share. Only the event loop may use it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, max_bytes: int, most_answer_bytes: int, most_running: int
    ) -> None:
        self._loop = loop
        self._max_bytes = max_bytes
        self._reserved = most_answer_bytes
        self._most_running = most_running
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._made: dict[weakref.ref[GraphqlText], int] = {}
        self.running = 0
        self.held_bytes = 0
        """Bytes of all responses that are being built or not yet received."""

    async def enter(self) -> None:
        """Wait until one more response fits. Raises `LaneFull` when too many requests wait."""
        if not self._waiting and self._fits_one_more():
            self._begin()
            return
        if len(self._waiting) >= _MAX_WAITING:
            raise LaneFull("graphql", _MAX_WAITING)
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with contextlib.suppress(ValueError):
                    self._waiting.remove(turn)
            else:
                # the request got its slot and was cancelled in the same iteration of the event loop: free the slot
                self.leave(None)
            raise

    def leave(self, text: GraphqlText | None) -> None:
        """Record that a response is finished. `text` is None if the response could not be built."""
        self.running -= 1
        self.held_bytes -= self._reserved
        if text is not None:
            self._made[weakref.ref(text, self._is_gone)] = len(text)
            self.held_bytes += len(text)
        self._admit()

    def _is_gone(self, text: weakref.ref[GraphqlText]) -> None:
        # the last reference may be dropped in a worker thread, so use the thread-safe call
        with contextlib.suppress(RuntimeError):  # the event loop may be closed
            self._loop.call_soon_threadsafe(self._give_back, text)

    def _give_back(self, text: weakref.ref[GraphqlText]) -> None:
        self.held_bytes -= self._made.pop(text)
        self._admit()

    def _fits_one_more(self) -> bool:
        return self.running < self._most_running and self.held_bytes + self._reserved <= self._max_bytes

    def _begin(self) -> None:
        self.running += 1
        self.held_bytes += self._reserved

    def _admit(self) -> None:
        while self._waiting and self._fits_one_more():
            turn = self._waiting.popleft()
            if not turn.cancelled():
                self._begin()
                turn.set_result(None)
