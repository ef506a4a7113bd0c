"""Interface of sub-protocols: eth, consensus, priv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Capability


class Attached(Protocol):
    """A sub-protocol on one connection; receives the messages of this sub-protocol."""

    def received(self, code: int, payload: bytes) -> None:
        """Handle one message on the event loop. Messages arrive in order. `code` is relative to the first code of the
        sub-protocol.

        Slow work belongs in `Peer.spawn`. A raised `PeerMisbehaved` ends the connection with the reason of the
        exception; `DecodeError` ends the connection with `BREACH`.
        """

    def oversized(self, code: int, size: int) -> None:
        """Handle a message above the size limit of its code. The payload of the message is not passed.

        Raise `PeerMisbehaved` to end the connection; return to drop the message.
        """

    def closed(self) -> None:
        """Called once when the connection has ended, even if no message was received."""


class Subprotocol(Protocol):
    """A sub-protocol that this node offers, with its versions."""

    capabilities: Sequence[Capability]

    def attach(self, peer: Peer, version: int) -> Attached:
        """Start the sub-protocol on a connection, after Hello and before the first message. The sub-protocol may
        already send messages.
        """
