"""Memory of the C allocator."""

from ophion._native import give_back, keep_freed, note_heap

__all__ = ["give_back", "keep_freed", "note_heap"]
