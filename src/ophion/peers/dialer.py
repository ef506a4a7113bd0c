"""`Dialer`: dials the nodes of the dial plan, within the peer limit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from ophion.peers.peer_table import Peers
from ophion.peers.policy.dial_plan import DialOutcome, DialPlan
from ophion.primitives.enode import Enode
from ophion.runtime.clock import Clock

_MAX_DIALS: Final = 16
"""Limit of concurrent dials to nodes with reserved slots. Dials to other nodes have a separate limit of the same
size.
"""
_MIN_WAIT_S: Final = 0.01


class Dialer:
    """Dials nodes when they are due. Callers call `wake` when the dial plan or the connected peers have changed."""

    def __init__(
        self,
        plan: DialPlan,
        peers: Peers,
        max_peers: int,
        clock: Clock,
        may_dial: Callable[[Enode], bool],
        connect: Callable[[Enode], Awaitable[bool]],
    ) -> None:
        """Create the dialer. `connect` dials a node once and runs the connection until its end. `connect` returns False
        if the dial failed.
        """
        self._plan = plan
        self._peers = peers
        self._max_peers = max_peers
        self._clock = clock
        self._may_dial = may_dial
        self._connect = connect
        self._under_way: set[bytes] = set()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """Number of dial attempts in progress."""
        return len(self._under_way)

    @property
    def targets(self) -> Collection[bytes]:
        """Ids of the nodes that are being dialled."""
        return self._under_way

    def __contains__(self, node_id: object) -> bool:
        """Whether a node is connected or being dialled."""
        return node_id in self._under_way or (isinstance(node_id, bytes) and self._peers.by_id(node_id) is not None)

    @property
    def capacity(self) -> int:
        """Number of further peers that the peer limit allows."""
        others = {peer.id for peer in self._peers} | self._under_way
        return self._max_peers - sum(not self._plan.has_reserved_slot(node_id) for node_id in others)

    @property
    def _reserved(self) -> int:
        """Number of dial attempts in progress to nodes with a reserved slot."""
        return sum(map(self._plan.has_reserved_slot, self._under_way))

    @property
    def _free(self) -> int:
        """Number of nodes without a reserved slot that may be dialled now."""
        return min(self.capacity, _MAX_DIALS - len(self._under_way) + self._reserved)

    def wake(self) -> None:
        """Make `run` check the dial plan again."""
        self._changed.set()

    def arrived(self, node_id: bytes) -> None:
        """Remove the dial attempt to a node that has connected, inbound or outbound."""
        if node_id in self._under_way:
            self._under_way.discard(node_id)
            self._changed.set()

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        """Dial until cancelled. Connections run in `tasks` and may outlive this call."""
        while True:
            self._changed.clear()
            self._dial_due(tasks)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._changed.wait()

    def _dial_due(self, tasks: asyncio.TaskGroup) -> None:
        now = self._clock.monotonic()
        for enode in self._plan.due(now, self, self._free):
            if self._reserved >= _MAX_DIALS and self._plan.has_reserved_slot(enode.node_id):
                continue
            if not self._may_dial(enode):
                self._plan.ended(enode.node_id, now, DialOutcome.FAILED)
                continue
            self._under_way.add(enode.node_id)
            tasks.create_task(self._attempt(enode))

    def _pause(self) -> float | None:
        """Seconds until the next attempt. If None, `run` waits until `wake` is called or an attempt ends."""
        due = self._plan.next_due(self, self._free)
        if due is None or self._reserved >= _MAX_DIALS:
            return None
        return max(due - self._clock.monotonic(), _MIN_WAIT_S)

    async def _attempt(self, enode: Enode) -> None:
        is_made = True
        try:
            is_made = await self._connect(enode)
        finally:
            self._under_way.discard(enode.node_id)
            if not is_made:
                self._plan.ended(enode.node_id, self._clock.monotonic(), DialOutcome.FAILED)
            self._changed.set()
