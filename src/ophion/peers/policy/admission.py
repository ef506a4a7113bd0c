"""`Admission`: bans, duplicate connections and peer limits after Hello (networking.md 5.1, 5.3).

Before these checks, `PeerService.judge` checks the permission rules (`permissions/node_rules.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TypeAlias

from msgspec import Struct

from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.peer import Peer
from ophion.peers.peer_table import Peers
from ophion.peers.policy.bans import Bans

HasReservedSlot: TypeAlias = Callable[[bytes], bool]
"""Returns whether a node has a reserved slot, as a static peer or a validator."""


class PeerLimits(Struct, frozen=True):
    """Peer limits. Nodes with a reserved slot do not count against the limits."""

    max_peers: int = 25
    max_inbound: int | None = None
    """Limit of inbound peers; None for no limit."""

    @classmethod
    def of(cls, max_peers: int, percentage: int | None) -> PeerLimits:
        """Build limits from the maximum percentage of inbound peers, or None for no inbound limit."""
        return cls(max_peers, None if percentage is None else max_peers * percentage // 100)


class Admission:
    """Checks a new connection against bans, existing connections and peer limits."""

    def __init__(
        self,
        own_id: bytes,
        peers: Peers,
        limits: PeerLimits,
        bans: Bans,
        has_reserved_slot: HasReservedSlot,
        banned_ids: Container[bytes] = (),
    ) -> None:
        self._own_id = own_id
        self._peers = peers
        self._limits = limits
        self._bans = bans
        self._has_reserved_slot = has_reserved_slot
        self._banned_ids = banned_ids

    def is_banned(self, node_id: bytes, now: float) -> bool:
        """Whether the operator has banned the node, or `Bans` contains the node and the node has no reserved slot."""
        return node_id in self._banned_ids or (
            not self._has_reserved_slot(node_id) and self._bans.is_barred(node_id, now)
        )

    def judge(self, newcomer: Peer, now: float) -> Peer | None:
        """Return the peer that `newcomer` replaces, an older connection to the same node, or None.

        Raises `PeerMisbehaved` with the disconnect reason when the newcomer is rejected.
        """
        if self.is_banned(newcomer.id, now):
            raise PeerMisbehaved(DisconnectReason.REQUESTED, "the node is banned")
        present = self._peers.by_id(newcomer.id)
        if present is not None:
            if present.is_open and not keeps_newer(self._own_id, present, newcomer):
                raise PeerMisbehaved(DisconnectReason.ALREADY_CONNECTED, "already connected to this node")
        elif not self._has_reserved_slot(newcomer.id):
            self._check_limits(newcomer)
        return present

    def _check_limits(self, newcomer: Peer) -> None:
        others = [peer for peer in self._peers if not self._has_reserved_slot(peer.id)]
        limits = self._limits
        if len(others) >= limits.max_peers:
            raise PeerMisbehaved(DisconnectReason.TOO_MANY_PEERS, f"at most {limits.max_peers} peers")
        if newcomer.is_inbound and limits.max_inbound is not None:
            inbound = sum(peer.is_inbound for peer in others)
            if inbound >= limits.max_inbound:
                raise PeerMisbehaved(DisconnectReason.TOO_MANY_PEERS, f"at most {limits.max_inbound} inbound peers")


def keeps_newer(own_id: bytes, older: Peer, newer: Peer) -> bool:
    """Whether to keep the newer of two connections with the same node. Both nodes come to the same result.

    When two nodes dial each other at the same time, they keep the connection that the node with the lower id opened. Of
    two connections in the same direction, they keep the older connection.
    """
    if older.is_inbound == newer.is_inbound:
        return False
    return newer.is_inbound is (newer.id < own_id)
