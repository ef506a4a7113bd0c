"""`Directory`: connected enclaves by the keys that they have proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ophion.enclave.parcels import Line

MAX_LINES: Final = 8
"""Nodes that may hold the same key, such as a spare."""


class Directory:
    """Connections by key. A key is entered once the peer has proven that it holds the private key."""

    def __init__(self) -> None:
        self._lines: dict[bytes, list[Line]] = {}
        self.on_came: Callable[[Line, bytes], None] | None = None
        """Called when a key is reachable over a new connection."""

    def came(self, line: Line, key: bytes) -> bool:
        """Enter a connection that has proven a key; False when the key has enough connections."""
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
        """Remove a closed connection."""
        for key in [key for key, lines in self._lines.items() if line in lines]:
            self._lines[key].remove(line)
            if not self._lines[key]:
                del self._lines[key]

    def lines(self, key: bytes) -> Sequence[Line]:
        """Connections to a key; empty while its enclave is offline."""
        return tuple(self._lines.get(key, ()))

    def known(self) -> Mapping[bytes, Sequence[Line]]:
        """All reachable keys."""
        return self._lines
