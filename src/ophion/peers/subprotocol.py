"""Interface of sub-protocols: eth, consensus, priv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Capability


class Attached(Protocol):
    """A sub-protocol on one connection."""

    def received(self, code: int, payload: bytes) -> None:
        """Handle one message, in order, on the event loop; `code` starts at 0. Slow work belongs in `Peer.spawn`.

        `PeerMisbehaved` ends the connection with its reason, `DecodeError` with `BREACH`.
        """

    def oversized(self, code: int, size: int) -> None:
        """Handle a message above the limit of its code (`Capability.max_bytes`, `Peer.limit`), without its payload.

        `PeerMisbehaved` ends the connection; returning drops the message.
        """

    def closed(self) -> None:
        """Called once when the connection has ended, also without any message before."""


class Subprotocol(Protocol):
    """A sub-protocol with its offered versions."""

    capabilities: Sequence[Capability]

    def attach(self, peer: Peer, version: int) -> Attached:
        """Start on a connection: called once after Hello, before any message. May send at once."""
