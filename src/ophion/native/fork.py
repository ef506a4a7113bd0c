"""State of a forked chain."""

from ophion._native import FORK_MARKER_SLOT, ForkState

__all__ = ["FORK_MARKER_SLOT", "ForkState"]
