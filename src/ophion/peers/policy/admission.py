"""Who may become a peer, once it has shown its key and said Hello (networking.md 5.1, 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TypeAlias

from msgspec import Struct

from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.peer import Peer
from ophion.peers.peer_table import Peers
from ophion.peers.policy.bans import Bans

HasPlace: TypeAlias = Callable[[bytes], bool]
"""Whether a node is static, or one of those who make the blocks of the chain."""


class PeerLimits(Struct, frozen=True):
    """How many peers there may be; those that have a place of their own do not count against it."""

    max_peers: int = 25
    max_inbound: int | None = None
    """How many of them may have come to us; None: all."""

    @classmethod
    def of(cls, max_peers: int, percentage: int | None) -> PeerLimits:
        """Limits with a share of inbound peers in percent."""
        return cls(max_peers, None if percentage is None else max_peers * percentage // 100)


class Admission:
    """Judges newcomers against those who are here."""

    def __init__(
        self,
        own_id: bytes,
        peers: Peers,
        limits: PeerLimits,
        bans: Bans,
        has_place: HasPlace,
        banned_ids: Container[bytes] = (),
    ) -> None:
        self._own_id = own_id
        self._peers = peers
        self._limits = limits
        self._bans = bans
        self._has_place = has_place
        self._banned_ids = banned_ids

    def is_banned(self, node_id: bytes, now: float) -> bool:
        """Whether this node is not wanted: by the operator, or for a while."""
        return node_id in self._banned_ids or (not self._has_place(node_id) and self._bans.is_barred(node_id, now))

    def judge(self, newcomer: Peer, now: float) -> Peer | None:
        """Raises `PeerMisbehaved` with the reason to tell a newcomer that may not stay.

        Otherwise returns the connection with the same node that has to go in its favour, or None.
        """
        if self.is_banned(newcomer.id, now):
            raise PeerMisbehaved(DisconnectReason.REQUESTED, "the node is banned")
        present = self._peers.by_id(newcomer.id)
        if present is not None:
            if present.is_open and not keeps_newer(self._own_id, present, newcomer):
                raise PeerMisbehaved(DisconnectReason.ALREADY_CONNECTED, "there is a connection with this node")
        elif not self._has_place(newcomer.id):
            self._check_limits(newcomer)
        return present

    def _check_limits(self, newcomer: Peer) -> None:
        others = [peer for peer in self._peers if not self._has_place(peer.id)]
        limits = self._limits
        if len(others) >= limits.max_peers:
            raise PeerMisbehaved(DisconnectReason.TOO_MANY_PEERS, f"{len(others)} peers are enough")
        if newcomer.is_inbound and limits.max_inbound is not None:
            inbound = sum(peer.is_inbound for peer in others)
            if inbound >= limits.max_inbound:
                raise PeerMisbehaved(DisconnectReason.TOO_MANY_PEERS, f"{inbound} inbound peers are enough")


def keeps_newer(own_id: bytes, older: Peer, newer: Peer) -> bool:
    """Which of two connections with the same node stays, so that both ends decide alike.

    Two nodes that dial each other at the same time have one connection of each direction: the one that the node with
    the lower id opened stays. Of two in the same direction the older stays.
    """
    if older.is_inbound == newer.is_inbound:
        return False
    return newer.is_inbound is (newer.id < own_id)
