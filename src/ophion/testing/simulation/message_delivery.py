"""Delivers messages and blocks between nodes: links, partitions, losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import TypeAlias

from ophion.consensus.bft.events import RelayMessage
from ophion.consensus.bft.messages import BftMessage
from ophion.primitives.types import Address
from ophion.testing.simulation.event_queue import EventQueue
from ophion.testing.simulation.fault_plan import CALM, LinkQuality
from ophion.testing.simulation.simulated_node import FinalBlock, SimulatedMember
from ophion.testing.simulation.trace import Trace

Payload: TypeAlias = "BftMessage | FinalBlock"
"""A message or block between nodes."""


class MessageDelivery:
    """Delivers messages to connected nodes, possibly late, twice or not at all."""

    def __init__(
        self,
        event_queue: EventQueue,
        rng: Random,
        trace: Trace | None,
        deliver: Callable[[SimulatedMember, tuple[BftMessage, Address]], None],
        deliver_block: Callable[[SimulatedMember, FinalBlock], None],
    ) -> None:
        self.link: LinkQuality = CALM
        self.gossips = True
        """Whether nodes relay messages."""
        self.reports_links = False
        """Whether members report their connections, so that messages are not relayed to members that already have these
        messages.
        """
        self.count = 0
        """Messages sent so far, including relayed and lost messages."""
        self.extra_loss: dict[type, float] = {}
        """Share of lost messages by type, in addition to the loss of the link."""
        self.filter: Callable[[int, int, Payload], bool] | None = None
        """Called with sender, receiver and message; returning False drops the message. For scripted tests."""
        self.missing_links: set[frozenset[int]] = set()
        """Pairs of nodes without a connection."""
        self._event_queue = event_queue
        self._rng = rng
        self._trace = trace
        self._deliver = deliver
        self._deliver_block = deliver_block

    def are_connected(self, first: SimulatedMember, second: SimulatedMember) -> bool:
        """Whether a message between the two nodes can arrive."""
        return first.group == second.group and frozenset((first.index, second.index)) not in self.missing_links

    def send(
        self,
        sender: SimulatedMember,
        message: BftMessage,
        receivers: Iterable[SimulatedMember],
        delay_s: float | None = None,
    ) -> None:
        """Send a message once to each receiver; `delay_s` fixes the delay of every copy."""
        fates: dict[int, float | None] = {}
        for receiver in receivers:
            if receiver is not sender:
                fates[receiver.index] = self._send_one(sender, receiver, message, delay_s)
        if self._trace is not None:
            self._trace.message(self._event_queue.now, sender.index, message, fates)

    def relay(self, member: SimulatedMember, order: RelayMessage, receivers: Iterable[SimulatedMember]) -> None:
        """Relay a received message."""
        if self.gossips:
            listed = list(receivers)
            author = next((one for one in listed if one.address == order.message.author), None)
            for receiver in listed:
                if receiver is member or receiver.address in order.exclude:
                    continue
                has_link = author is not None and self.are_connected(author, receiver)
                if not (self.reports_links and has_link):
                    self._send_one(member, receiver, order.message)

    def announce(self, sender: SimulatedMember, block: FinalBlock, receivers: Iterable[SimulatedMember]) -> None:
        """Announce a finished block."""
        for receiver in receivers:
            if receiver is not sender:
                for delay in self._fate(sender, receiver, block):
                    self._event_queue.add(self._event_queue.now + delay, self._deliver_block, receiver, block)

    def _send_one(
        self, sender: SimulatedMember, receiver: SimulatedMember, message: BftMessage, delay_s: float | None = None
    ) -> float | None:
        """Schedule the delivery of a message. Returns the first arrival time; None if the message is lost."""
        self.count += 1
        delays = self._fate(sender, receiver, message)
        if delay_s is not None and delays:
            delays = (delay_s,)
        for delay in delays:
            self._event_queue.add(self._event_queue.now + delay, self._deliver, receiver, (message, sender.address))
        return min(delays) if delays else None

    def _fate(self, sender: SimulatedMember, receiver: SimulatedMember, payload: Payload) -> tuple[float, ...]:
        if not self.are_connected(sender, receiver):
            return ()
        if self.filter is not None and not self.filter(sender.index, receiver.index, payload):
            return ()
        if self.extra_loss and self._rng.random() < self.extra_loss.get(type(payload), 0.0):
            return ()
        return self.link.fate(self._rng)
