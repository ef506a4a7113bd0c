"""State that all connections of a node share, and the interface of their manager."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct, field

from ophion.peers.connection.message_reassembly import MessageReassembly
from ophion.peers.connection.receive_scheduler import ReceiveScheduler
from ophion.peers.connection.timeouts import StageTimeouts
from ophion.peers.connection.traffic import Traffic
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.peer import Peer
from ophion.peers.subprotocol import Subprotocol
from ophion.runtime.clock import Clock

if TYPE_CHECKING:
    from ophion.peers.connection.connection import Connection


class ConnectionManager(Protocol):
    """Accepts or rejects connections, and tracks the accepted connections."""

    def judge(self, peer: Peer) -> None:
        """Check a peer after Hello. Raises `PeerMisbehaved` with the disconnect reason to reject the peer."""

    def joined(self, connection: Connection, peer: Peer) -> None:
        """Called when the peer is accepted and its sub-protocols are attached."""

    def left(self, connection: Connection, ending: ConnectionEnd) -> None:
        """Called once when a connection has ended, even if it ended before Hello."""


class ConnectionEnd(NamedTuple):
    """How a connection ended: the disconnect reason, and which node ended the connection."""

    reason: DisconnectReason
    by_us: bool
    text: str


class PeerContext(Struct, frozen=True):
    """State and callbacks that all connections of a node share."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    scheduler: ReceiveScheduler
    traffic: Traffic
    manager: ConnectionManager
    subprotocols: Sequence[Subprotocol] = ()
    timing: StageTimeouts = field(default_factory=StageTimeouts)
    assembly: MessageReassembly[Connection] = field(default_factory=MessageReassembly)
    has_own_quota: Callable[[bytes], bool] = lambda node_id: False
    """Returns whether a node is exempt from the limit on incomplete large messages. Static peers, validators and
    permitted nodes are exempt.
    """
