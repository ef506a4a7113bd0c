"""Ending work for which nobody waits any more."""

from ophion._native import Cancellation

__all__ = ["Cancellation"]
