"""Functions that limit the freed memory which the C allocator holds, and return it to the operating system."""

from ophion._native import give_back, keep_freed, note_heap

__all__ = ["give_back", "keep_freed", "note_heap"]
