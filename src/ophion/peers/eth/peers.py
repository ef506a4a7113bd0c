"""`EthPeers`: the connected peers with a valid Status."""

from __future__ import annotations

from collections.abc import Iterator

from ophion.peers.eth.peer import EthPeer
from ophion.primitives.types import Address
from ophion.runtime.topic import Topic


class EthPeers:
    """The connected peers with a valid Status, oldest connection first."""

    def __init__(self) -> None:
        self._ready: dict[bytes, EthPeer] = {}
        self._by_address: dict[Address, EthPeer] = {}
        self.changed: Topic[EthPeer] = Topic()
        """Published when a peer sends a valid Status, raises its head or disconnects."""

    def __iter__(self) -> Iterator[EthPeer]:
        """Iterate over a snapshot of the peers."""
        return iter(tuple(self._ready.values()))

    def __len__(self) -> int:
        return len(self._ready)

    def by_id(self, node_id: bytes) -> EthPeer | None:
        """Return the ready peer with this node id, or None."""
        return self._ready.get(node_id)

    def by_address(self, address: Address) -> EthPeer | None:
        """Return the ready peer whose key has this address, or None."""
        return self._by_address.get(address)

    def add(self, peer: EthPeer) -> None:
        """Add a peer that has sent a valid Status."""
        self._ready[peer.peer.id] = peer
        self._by_address[peer.peer.address] = peer
        self.changed.publish(peer)

    def remove(self, peer: EthPeer) -> None:
        """Remove a peer, unless a newer connection has replaced it."""
        if self._ready.get(peer.peer.id) is peer:
            del self._ready[peer.peer.id]
            del self._by_address[peer.peer.address]
            self.changed.publish(peer)

    @property
    def best_height(self) -> int:
        """The highest estimated height of the peers; 0 without peers."""
        return max((peer.height for peer in self._ready.values()), default=0)
