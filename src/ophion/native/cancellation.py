"""Cancellation of work on other threads."""

from ophion._native import Cancellation

__all__ = ["Cancellation"]
