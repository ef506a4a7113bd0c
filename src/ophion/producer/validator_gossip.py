"""`Gossip`: how consensus sends messages to other validators."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from ophion.consensus.bft.messages import BftMessage
from ophion.primitives.types import Address


class Gossip(Protocol):
    """Carries messages between validators. What comes in goes to `BftDriver.received`."""

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        """Send an own message to the validators of its height."""

    def send(self, message: BftMessage, to: Address) -> None:
        """Send an own message to one validator that may have missed it."""

    def relay(self, message: BftMessage, exclude: Collection[Address | None]) -> None:
        """Relay a received message, byte for byte, to validators that are not in `exclude`."""

    def catch_up(self, peer: Address | None, height: int) -> None:
        """A peer sends messages of later heights: its chain has at least this block."""

    def connected(self) -> Collection[Address]:
        """Addresses of connected validators."""

    def clients(self) -> Iterable[str]:
        """Client names of connected validators."""

    def client_of(self, address: Address) -> str | None:
        """Return the client name of a validator; None if it is not connected."""


class NoPeers:
    """`Gossip` of a node without peers."""

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        """Sends nothing; the machine has counted its own message already."""

    def send(self, message: BftMessage, to: Address) -> None:
        """Sends nothing."""

    def relay(self, message: BftMessage, exclude: Collection[Address | None]) -> None:
        """Sends nothing."""

    def catch_up(self, peer: Address | None, height: int) -> None:
        """Requests nothing."""

    def connected(self) -> Collection[Address]:
        return ()

    def clients(self) -> Iterable[str]:
        return ()

    def client_of(self, address: Address) -> str | None:
        return None
