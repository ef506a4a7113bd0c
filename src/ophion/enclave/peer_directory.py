"""`Directory`: which enclaves can be reached now, by keys that they have proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ophion.enclave.parcels import Line

MAX_LINES: Final = 8
"""Nodes that may hold the same key: a spare, a restored copy."""


class Directory:
    """Lines by key. A key is entered when whoever is at the other end has proven that it holds the private one."""

    def __init__(self) -> None:
        self._lines: dict[bytes, list[Line]] = {}
        self.on_came: Callable[[Line, bytes], None] | None = None
        """Called when a key can be reached in a new way."""

    def came(self, line: Line, key: bytes) -> bool:
        """A line has proven a key; False when there are enough for it."""
        lines = self._lines.setdefault(key, [])
        if line in lines:
            return True
        if len(lines) >= MAX_LINES:
            return False
        lines.append(line)
        if self.on_came is not None:
            self.on_came(line, key)
        return True

    def left(self, line: Line) -> None:
        """A line is gone."""
        for key in [key for key, lines in self._lines.items() if line in lines]:
            self._lines[key].remove(line)
            if not self._lines[key]:
                del self._lines[key]

    def lines(self, key: bytes) -> Sequence[Line]:
        """Ways to a key; none while its enclave is away."""
        return tuple(self._lines.get(key, ()))

    def known(self) -> Mapping[bytes, Sequence[Line]]:
        """Every key that can be reached."""
        return self._lines
