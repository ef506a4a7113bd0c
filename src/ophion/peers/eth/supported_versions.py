"""Which versions of the eth protocol are offered: the numbers alone, since what they mean takes long to load."""

from __future__ import annotations


def offered_numbers(is_final: bool) -> tuple[int, ...]:
    """The versions for a network, oldest first; `is_final` where no block is ever replaced."""
    return (66, 68, 69) if is_final else (66, 68)
