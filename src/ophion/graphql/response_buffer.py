"""Memory for long answers: how many are made at the same time, and how much of them there may be.

An answer that is being made counts as if it were the longest allowed; once it is there it counts with its length, until
its client has taken it and nothing refers to it any more. Requests that do not fit wait in the order of their arrival,
so that one client's later requests cannot hold the room that its first one needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections import deque
from typing import Final

from ophion.native.graphql import GraphqlText
from ophion.runtime.lanes import LaneFull

_MAX_WAITING: Final = 1024


class ResponseBuffer:
    """The room that all answers of one service share. Used in the thread of the loop alone."""

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
        """What answers may occupy together: those being made, and those not yet taken."""

    async def enter(self) -> None:
        """Wait for the room of one more answer; `LaneFull` when too many wait already."""
        if not self._waiting and self._has_room():
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
                self.leave(None)  # its turn came in the same moment
            raise

    def leave(self, text: GraphqlText | None) -> None:
        """An answer has been made, or nothing came of it."""
        self.running -= 1
        self.held_bytes -= self._reserved
        if text is not None:
            self._made[weakref.ref(text, self._is_gone)] = len(text)
            self.held_bytes += len(text)
        self._admit()

    def _is_gone(self, text: weakref.ref[GraphqlText]) -> None:
        # a thread of a lane may have been the last to refer to it
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it the service
            self._loop.call_soon_threadsafe(self._give_back, text)

    def _give_back(self, text: weakref.ref[GraphqlText]) -> None:
        self.held_bytes -= self._made.pop(text)
        self._admit()

    def _has_room(self) -> bool:
        return self.running < self._most_running and self.held_bytes + self._reserved <= self._max_bytes

    def _begin(self) -> None:
        self.running += 1
        self.held_bytes += self._reserved

    def _admit(self) -> None:
        while self._waiting and self._has_room():
            turn = self._waiting.popleft()
            if not turn.cancelled():
                self._begin()
                turn.set_result(None)
