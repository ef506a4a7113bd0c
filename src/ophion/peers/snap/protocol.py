"""`SnapProtocol`: the sub-protocol snap/1 over one database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ophion.native.store import Store
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Capability
from ophion.peers.snap.messages import MAX_BYTES, NAME, VERSION, Code
from ophion.peers.snap.peer import SnapPeer, SnapPeers
from ophion.peers.snap.request_handler import SnapRequestHandler
from ophion.peers.subprotocol import Attached
from ophion.runtime.clock import Clock


class SnapProtocol:
    """The sub-protocol snap/1. Every node offers it."""

    def __init__(
        self,
        store: Store,
        lane: FairWorkerQueue[Peer],
        is_member: Callable[[Peer], bool],
        clock: Clock,
        peers: SnapPeers | None = None,
    ) -> None:
        """Create the sub-protocol. Worker threads of `lane` read the database. `is_member` returns whether a peer is a
        network member.

        `peers` is set on a node that downloads a state. The sub-protocol then adds each peer with snap/1 to `peers`.
        """
        self._store = store
        self._lane = lane
        self._is_member = is_member
        self._clock = clock
        self._peers = peers
        self._slot = asyncio.Semaphore(1)
        sizes = {int(code): size for code, size in MAX_BYTES.items()}
        names = tuple(code.label for code in Code)
        self.capabilities: Sequence[Capability] = (Capability(NAME, VERSION, len(Code), names, sizes),)

    def attach(self, peer: Peer, version: int) -> Attached:
        """Start snap on a connection."""
        handler = SnapRequestHandler(peer, self._store, self._lane, self._slot, self._is_member, self._clock)
        if self._peers is None:
            return handler
        attached = SnapPeer(peer, handler, self._peers)
        self._peers.add(attached)
        return attached
