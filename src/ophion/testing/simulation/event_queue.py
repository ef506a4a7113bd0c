"""Time in a simulation: what is going to happen, in order."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, TypeAlias

from ophion.testing.simulation.member import SimulatedMember

Action: TypeAlias = Callable[[SimulatedMember, Any], None]


class EventQueue:
    """Things to be done to members at moments; those of one moment in the order in which they were put down."""

    __slots__ = ("_heap", "_put_down", "current", "now", "steps")

    def __init__(self) -> None:
        self.now = 0.0
        self.steps = 0
        """How many things have been done."""
        self.current = 0
        """Number of the thing that is being done."""
        self._heap: list[tuple[float, int, Action, SimulatedMember, Any]] = []
        self._put_down = 0

    def add(self, at: float, action: Action, member: SimulatedMember, payload: Any) -> int:
        """Put something down; returns its number."""
        self._put_down += 1
        heapq.heappush(self._heap, (at, self._put_down, action, member, payload))
        return self._put_down

    def step(self, until: float) -> bool:
        """Do the next thing, if it is due by `until`; whether there was one."""
        heap = self._heap
        if not heap or heap[0][0] > until:
            return False
        self.now, self.current, action, member, payload = heapq.heappop(heap)
        self.steps += 1
        action(member, payload)
        return True
