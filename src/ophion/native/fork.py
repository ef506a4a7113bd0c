"""`ForkState`: the state of a development chain that forks another chain and fetches missing values from its node."""

from ophion._native import FORK_MARKER_SLOT, ForkState

__all__ = ["FORK_MARKER_SLOT", "ForkState"]
