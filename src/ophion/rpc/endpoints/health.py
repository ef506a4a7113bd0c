"""Whether this node should be asked anything at all: `/readiness` (json-rpc.md 1.8)."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ophion.rpc.services.context import SyncStatus


class Health(Struct, frozen=True):
    """What load balancers ask about."""

    sync_status: Callable[[], SyncStatus | None]
    peer_count: Callable[[], int] | None = None
    """None where the node has no network to wait for."""

    def is_ready(self, min_peers: int, max_blocks_behind: int) -> bool:
        """Enough peers, and not far behind the best block known."""
        if self.peer_count is not None and self.peer_count() < min_peers:
            return False
        status = self.sync_status()
        return status is None or status.highest_block - status.current_block <= max_blocks_behind
