"""Numbers of the offered eth versions. Separate from `versions`, whose import is slow."""

from __future__ import annotations


def offered_numbers(is_final: bool) -> tuple[int, ...]:
    """Return the version numbers, oldest first. `is_final` says whether the consensus has immediate finality."""
    return (66, 68, 69) if is_final else (66, 68)
