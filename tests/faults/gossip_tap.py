"""`GossipTap` intercepts the gossip of a validator in the process of a real node."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ophion.consensus.bft.messages import BftMessage
from ophion.primitives.types import Address
from ophion.producer.validator_gossip import ValidatorGossip


class GossipTap:
    """Forwards all messages. Subclasses change or record some of them."""

    def __init__(self, gossip: ValidatorGossip) -> None:
        self.gossip = gossip

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        self.gossip.multicast(message, validators)

    def send(self, message: BftMessage, to: Address) -> None:
        self.gossip.send(message, to)

    def relay(self, message: BftMessage, exclude: Collection[Address | None]) -> None:
        self.gossip.relay(message, exclude)

    def catch_up(self, peer: Address | None, height: int) -> None:
        self.gossip.catch_up(peer, height)

    def connected(self) -> Collection[Address]:
        return self.gossip.connected()

    def clients(self) -> Iterable[str]:
        return self.gossip.clients()

    def client_of(self, address: Address) -> str | None:
        return self.gossip.client_of(address)
