"""Readiness of the node for load balancers: `/readiness` (json-rpc.md 1.8)."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ophion.rpc.services.context import SyncStatus


class Health(Struct, frozen=True):
    """Decides readiness by peers and sync status."""

    sync_status: Callable[[], SyncStatus | None]
    peer_count: Callable[[], int] | None = None
    """Returns the number of peers; None if the node has no peer-to-peer network."""
    vote_store_problem: Callable[[], str | None] = lambda: None
    """Returns why a validator cannot sign; None if it can sign or uses no shared vote store."""

    def is_ready(self, min_peers: int, max_blocks_behind: int, checks_vote_store: bool = True) -> bool:
        """Whether the node has enough peers, is close to the best known block and can store votes."""
        if checks_vote_store and self.vote_store_problem() is not None:
            return False
        if self.peer_count is not None and self.peer_count() < min_peers:
            return False
        status = self.sync_status()
        return status is None or status.highest_block - status.current_block <= max_blocks_behind
