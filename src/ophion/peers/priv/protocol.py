"""`PrivProtocol`: the sub-protocol priv/1."""

from __future__ import annotations

from collections.abc import Sequence

from ophion.enclave.embedded import EmbeddedEnclave
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.peers.priv.messages import MAX_BYTES, Code
from ophion.peers.priv.peer import PrivPeer
from ophion.peers.rlpx.capability import Capability
from ophion.runtime.clock import Clock, Entropy


class PrivProtocol:
    """The sub-protocol priv/1. Nodes with an embedded enclave offer it."""

    def __init__(
        self,
        enclave: EmbeddedEnclave,
        node_id: bytes,
        clock: Clock,
        entropy: Entropy,
        lane: FairWorkerQueue[Peer] | None = None,
    ) -> None:
        """Create the sub-protocol. `lane` holds the worker threads that decode large messages. If `lane` is None, the
        sub-protocol creates a lane in which all peers have the same priority.
        """
        self.enclave = enclave
        self.node_id = node_id
        self.clock = clock
        self.entropy = entropy
        self.lane = FairWorkerQueue[Peer](enclave.lanes.peers, lambda peer: False) if lane is None else lane
        names = tuple(code.name.lower() for code in Code)
        self.capability = Capability("priv", 1, len(Code), names, {int(code): size for code, size in MAX_BYTES.items()})
        self.capabilities: Sequence[Capability] = (self.capability,)

    def attach(self, peer: Peer, version: int) -> PrivPeer:
        """Attach to a connection and announce the local enclave keys."""
        attached = PrivPeer(peer, self.enclave, self.node_id, self.clock, self.entropy, self.lane)
        attached.announce()
        return attached
