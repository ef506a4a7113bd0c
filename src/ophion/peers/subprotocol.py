"""What rides on a connection: eth, and the messages of validators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Capability


class Attached(Protocol):
    """A sub-protocol on one connection."""

    def received(self, code: int, payload: bytes) -> None:
        """One message, in order, on the loop; `code` counts from 0. Short: slow work goes to `Peer.spawn`.

        `PeerMisbehaved` ends the connection with its reason, `DecodeError` as a breach of protocol.
        """

    def oversized(self, code: int, size: int) -> None:
        """A message over the limit of its code (`Capability.max_bytes`, `Peer.limit`); its payload was not read.

        `PeerMisbehaved` ends the connection; returning drops the message.
        """

    def closed(self) -> None:
        """The connection is gone; called once, also where `received` was never called."""


class Subprotocol(Protocol):
    """One name with its offered versions."""

    capabilities: Sequence[Capability]

    def attach(self, peer: Peer, version: int) -> Attached:
        """Both sides have it: called once after the Hellos, before any message. Sends its first message at once."""
