"""`ValidatorGossip`: how consensus sends messages to other validators."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from ophion.consensus.bft.messages import BftMessage
from ophion.primitives.types import Address


class ValidatorGossip(Protocol):
    """Carries messages between validators. Received messages go to `BftDriver.received`."""

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        """Send an own message to the validators of its height."""

    def send(self, message: BftMessage, to: Address) -> None:
        """Send an own message to one validator that may have missed it."""

    def relay(self, message: BftMessage, exclude: Collection[Address | None]) -> None:
        """Relay a received message, byte for byte, to validators that are not in `exclude`."""

    def catch_up(self, peer: Address | None, height: int) -> None:
        """Synchronise up to `height`. The peer `peer` must have reached this height, because it sends messages of
        later heights.
        """

    def connected(self) -> Collection[Address]:
        """Addresses of connected validators."""

    def clients(self) -> Iterable[str]:
        """Client names of connected validators."""

    def client_of(self, address: Address) -> str | None:
        """Return the client name of a validator, or None if the validator is not connected."""


class NoPeers:
    """`ValidatorGossip` of a node without peers."""

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        """Send nothing. The state machine has already counted its own message."""

    def send(self, message: BftMessage, to: Address) -> None:
        """Send nothing."""

    def relay(self, message: BftMessage, exclude: Collection[Address | None]) -> None:
        """Send nothing."""

    def catch_up(self, peer: Address | None, height: int) -> None:
        """Request no blocks."""

    def connected(self) -> Collection[Address]:
        return ()

    def clients(self) -> Iterable[str]:
        return ()

    def client_of(self, address: Address) -> str | None:
        return None
