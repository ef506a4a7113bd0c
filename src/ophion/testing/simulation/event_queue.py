"""Virtual time of a simulation: runs scheduled actions in order."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, TypeAlias

from ophion.testing.simulation.simulated_node import SimulatedMember

Action: TypeAlias = Callable[[SimulatedMember, Any], None]


class EventQueue:
    """Actions on nodes by time; actions at the same time run in order of insertion."""

    __slots__ = ("_heap", "_put_down", "current", "now", "steps")

    def __init__(self) -> None:
        self.now = 0.0
        self.steps = 0
        """Number of actions that have run."""
        self.current = 0
        """Number of the running action."""
        self._heap: list[tuple[float, int, Action, SimulatedMember, Any]] = []
        self._put_down = 0

    def add(self, at: float, action: Action, member: SimulatedMember, payload: Any) -> int:
        """Schedule an action; return its number."""
        self._put_down += 1
        heapq.heappush(self._heap, (at, self._put_down, action, member, payload))
        return self._put_down

    def step(self, until: float) -> bool:
        """Run the next action if it is due by `until`; return whether an action was run."""
        heap = self._heap
        if not heap or heap[0][0] > until:
            return False
        self.now, self.current, action, member, payload = heapq.heappop(heap)
        self.steps += 1
        action(member, payload)
        return True
