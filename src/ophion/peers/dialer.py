"""`Dialer`: the attempts under way, as many as the plan asks for and there is room."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from ophion.peers.peer_table import Peers
from ophion.peers.policy.dial_plan import DialPlan, Outcome
from ophion.primitives.enode import Enode
from ophion.runtime.clock import Clock

_MAX_DIALS: Final = 16
"""Attempts at a time at those who have a place, and as many at others: who lets dials hang delays no validator."""
_SHORTEST_WAIT_S: Final = 0.01


class Dialer:
    """Dials whom the plan names, when it is their time. Whoever changes the plan or ends a connection wakes it."""

    def __init__(
        self,
        plan: DialPlan,
        peers: Peers,
        max_peers: int,
        clock: Clock,
        may_dial: Callable[[Enode], bool],
        connect: Callable[[Enode], Awaitable[bool]],
    ) -> None:
        """`connect` makes one attempt and lives with what comes of it; False where no connection was made."""
        self._plan = plan
        self._peers = peers
        self._max_peers = max_peers
        self._clock = clock
        self._may_dial = may_dial
        self._connect = connect
        self._under_way: set[bytes] = set()
        self._news = asyncio.Event()

    def __len__(self) -> int:
        """Attempts under way."""
        return len(self._under_way)

    def __contains__(self, node_id: object) -> bool:
        """Whether this node needs no further attempt: it is connected, or being dialled."""
        return node_id in self._under_way or (isinstance(node_id, bytes) and self._peers.by_id(node_id) is not None)

    @property
    def room(self) -> int:
        """How many more peers would be welcome."""
        others = {peer.id for peer in self._peers} | self._under_way
        return self._max_peers - sum(not self._plan.has_place(node_id) for node_id in others)

    @property
    def _placed(self) -> int:
        """Attempts at those who have a place."""
        return sum(map(self._plan.has_place, self._under_way))

    @property
    def _free(self) -> int:
        """How many of those who have none may be dialled now."""
        return min(self.room, _MAX_DIALS - len(self._under_way) + self._placed)

    def wake(self) -> None:
        """Look at the plan again."""
        self._news.set()

    def arrived(self, node_id: bytes) -> None:
        """Somebody has become a peer: whoever dialled whom, that attempt is over."""
        if node_id in self._under_way:
            self._under_way.discard(node_id)
            self._news.set()

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        """Dial until cancelled. What comes of it lives in `tasks`, and may say goodbye after that."""
        while True:
            self._news.clear()
            self._begin_due(tasks)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._news.wait()

    def _begin_due(self, tasks: asyncio.TaskGroup) -> None:
        now = self._clock.monotonic()
        for enode in self._plan.due(now, self, self._free):
            if self._placed >= _MAX_DIALS and self._plan.has_place(enode.node_id):
                continue
            if not self._may_dial(enode):
                self._plan.ended(enode.node_id, now, Outcome.FAILED)
                continue
            self._under_way.add(enode.node_id)
            tasks.create_task(self._attempt(enode))

    def _pause(self) -> float | None:
        """Seconds until the next attempt; None: until news, as where the end of one attempt makes room for another."""
        due = self._plan.next_due(self, self._free)
        if due is None or self._placed >= _MAX_DIALS:
            return None
        return max(due - self._clock.monotonic(), _SHORTEST_WAIT_S)

    async def _attempt(self, enode: Enode) -> None:
        is_made = True
        try:
            is_made = await self._connect(enode)
        finally:
            self._under_way.discard(enode.node_id)
            if not is_made:
                self._plan.ended(enode.node_id, self._clock.monotonic(), Outcome.FAILED)
            self._news.set()
