"""`PeerDirectory`: looks up connections to other enclaves by enclave key. A key counts after the peer has proven it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ophion.enclave.payload_exchange import EnclaveLink

MAX_LINES: Final = 8
"""Maximum number of connections per key. Several nodes may hold the same key, for example a standby node."""


class PeerDirectory:
    """Connections to other enclaves, by enclave key. A key is added after the peer has proven that it holds the
    matching private key.
    """

    def __init__(self) -> None:
        self._lines: dict[bytes, list[EnclaveLink]] = {}
        self.on_came: Callable[[EnclaveLink, bytes], None] | None = None
        """Listener that is called when a new connection has proven a key."""

    def came(self, line: EnclaveLink, key: bytes) -> bool:
        """Add a connection that has proven a key. Returns False if the key already has the maximum number of
        connections.
        """
        lines = self._lines.setdefault(key, [])
        if line in lines:
            return True
        if len(lines) >= MAX_LINES:
            return False
        lines.append(line)
        if self.on_came is not None:
            self.on_came(line, key)
        return True

    def left(self, line: EnclaveLink) -> None:
        """Remove a closed connection from all its keys."""
        for key in [key for key, lines in self._lines.items() if line in lines]:
            self._lines[key].remove(line)
            if not self._lines[key]:
                del self._lines[key]

    def lines(self, key: bytes) -> Sequence[EnclaveLink]:
        """Return the connections to a key. The result is empty while the key's enclave is offline."""
        lines = self._lines.get(key, ())
        return tuple(line for line in lines if not line.is_fallback) or tuple(lines)

    def known(self) -> Mapping[bytes, Sequence[EnclaveLink]]:
        """Return all reachable keys with their connections."""
        return self._lines
