"""`Peers`: the table of connected peers, which publishes an event for each change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.peer import Peer
from ophion.primitives.types import Address
from ophion.runtime.topic import Topic


class PeerConnected(Struct, frozen=True):
    """Event: a peer was accepted after Hello, and its sub-protocols are attached."""

    peer: Peer


class PeerGone(Struct, frozen=True):
    """Event: the connection of a peer has ended."""

    peer: Peer
    reason: DisconnectReason
    by_us: bool
    """Whether this node ended the connection."""


PeerEvent: TypeAlias = PeerConnected | PeerGone


class Peers:
    """The connected peers by node id, oldest first. Each node has at most one connection."""

    __slots__ = ("_by_address", "_by_id", "events")

    def __init__(self) -> None:
        self._by_id: dict[bytes, Peer] = {}
        self._by_address: dict[Address, Peer] = {}
        self.events: Topic[PeerEvent] = Topic()

    def __iter__(self) -> Iterator[Peer]:
        """Iterate over a copy, because peers may disconnect during the iteration."""
        return iter(tuple(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)

    def by_id(self, node_id: bytes) -> Peer | None:
        """Return the peer with this node id, or None."""
        return self._by_id.get(node_id)

    def by_address(self, address: Address) -> Peer | None:
        """Return the peer whose key has this address, or None."""
        return self._by_address.get(address)

    def add(self, peer: Peer) -> None:
        """Add a peer and publish the event. Only the service calls this."""
        if peer.id in self._by_id:
            raise ValueError(f"{peer!r} is connected already")
        self._by_id[peer.id] = peer
        self._by_address[peer.address] = peer
        self.events.publish(PeerConnected(peer))

    def remove(self, peer: Peer, reason: DisconnectReason, by_us: bool) -> None:
        """Remove a peer and publish the event. Only the service calls this."""
        if self._by_id.get(peer.id) is peer:
            del self._by_id[peer.id]
            del self._by_address[peer.address]
            self.events.publish(PeerGone(peer, reason, by_us))
