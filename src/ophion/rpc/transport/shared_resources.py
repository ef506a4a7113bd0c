"""Resources that all services of a node share: memory budget, scheduler, compression thread."""

from __future__ import annotations

from msgspec import Struct, field

from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.memory_budget import MemoryBudget
from ophion.runtime.thread_pools import InlineLane, Lane


class SharedResources(Struct, frozen=True):
    """One memory budget and one scheduler for the clients of all services."""

    budget: MemoryBudget = field(default_factory=MemoryBudget)
    scheduler: FairScheduler = field(default_factory=FairScheduler)
    lane: Lane = field(default_factory=lambda: InlineLane("pack"))
    """The lane (worker thread) that compresses answers."""
