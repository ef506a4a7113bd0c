"""The settings of the peer service, and the error for a port that cannot be opened."""

from __future__ import annotations

import errno
from pathlib import Path

from msgspec import Struct, field

from ophion.errors import OphionError
from ophion.peers.connection.timeouts import StageTimeouts
from ophion.peers.policy.addresses import Subnet
from ophion.peers.policy.admission import PeerLimits
from ophion.primitives.enode import Enode
from ophion.runtime.port_in_use import is_taken, taken


class PeerSettings(Struct, frozen=True):
    """Settings of the peer service."""

    host: str = "127.0.0.1"
    """The address that this node advertises to peers."""
    interface: str = "127.0.0.1"
    """The local address on which this node listens for peers."""
    port: int = 0
    limits: PeerLimits = field(default_factory=PeerLimits)
    static: tuple[Enode, ...] = ()
    banned: frozenset[bytes] = frozenset()
    subnets: tuple[Subnet, ...] = ()
    client_id: str = "ophion"
    has_discovery: bool = False
    bootnodes: tuple[Enode, ...] = ()
    asks_router: bool = False
    """Whether to request a port mapping from the router with UPnP."""
    record_file: Path | None = None
    """File for the node record; None if the record is not stored."""
    timing: StageTimeouts = field(default_factory=StageTimeouts)


class PeerListenError(OphionError):
    """Raised when the port for peers cannot be opened."""


def listen_error(interface: str, port: int, error: OSError) -> PeerListenError:
    """Return the error that tells the operator why a port cannot be opened."""
    if error.errno == errno.EADDRNOTAVAIL:
        return PeerListenError(f"The provided --p2p-interface is not available: {interface}")
    reason = taken("--p2p-port") if is_taken(error) else error.strerror or str(error)
    return PeerListenError(f"P2P service cannot listen on {interface}:{port}: {reason}")
