"""`Cancellation`: a flag with which one thread stops work of the Rust extension in another thread."""

from ophion._native import Cancellation

__all__ = ["Cancellation"]
