"""What all services of a node share, since it is one process on one loop: bytes and time."""

from __future__ import annotations

from dataclasses import dataclass, field

from ophion.rpc.transport.budget import Budget
from ophion.rpc.transport.turns import Turns


@dataclass(frozen=True, slots=True)
class Commons:
    """One budget and one order of turns for the clients of all services."""

    budget: Budget = field(default_factory=Budget)
    turns: Turns = field(default_factory=Turns)
