"""`PeerDirectory`: looks up connections to other enclaves by enclave key. A key counts after the peer has proven it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ophion.enclave.payload_exchange import EnclaveLink

MAX_LINKS: Final = 8
"""Maximum number of connections per key. Several nodes may hold the same key, for example a standby node."""


class PeerDirectory:
    """Connections to other enclaves, by enclave key. A key is added after the peer has proven that it holds the
    matching private key.
    """

    def __init__(self) -> None:
        self._links: dict[bytes, list[EnclaveLink]] = {}
        self.on_came: Callable[[EnclaveLink, bytes], None] | None = None
        """Listener that is called when a new connection has proven a key."""

    def add(self, link: EnclaveLink, key: bytes) -> bool:
        """Add a connection that has proven a key. Returns False if the key already has the maximum number of
        connections.
        """
        links = self._links.setdefault(key, [])
        if link in links:
            return True
        if len(links) >= MAX_LINKS:
            return False
        links.append(link)
        if self.on_came is not None:
            self.on_came(link, key)
        return True

    def remove(self, link: EnclaveLink) -> None:
        """Remove a closed connection from all its keys."""
        for key in [key for key, links in self._links.items() if link in links]:
            self._links[key].remove(link)
            if not self._links[key]:
                del self._links[key]

    def links(self, key: bytes) -> Sequence[EnclaveLink]:
        """Return the connections to a key; fallback connections only if there are no others. Empty while offline."""
        links = self._links.get(key, ())
        return tuple(link for link in links if not link.is_fallback) or tuple(links)

    def known(self) -> Mapping[bytes, Sequence[EnclaveLink]]:
        """Return all reachable keys with their connections."""
        return self._links
