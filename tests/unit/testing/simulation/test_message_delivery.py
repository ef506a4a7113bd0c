"""Tests receivers and times of delivered messages."""

from __future__ import annotations

from ophion.consensus.bft.events import RelayMessage
from ophion.consensus.bft.messages import Commit, Prepare
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.fake_crypto import FakeMessageFactory
from ophion.testing.simulation.fault_plan import LinkQuality
from ophion.testing.simulation.network import SimulatedNetwork


class RecordedNetwork:
    """Four nodes that are down. The test only records arriving messages."""

    def __init__(self) -> None:
        self.world = SimulatedNetwork(NetworkSettings(Qbft(), 4), 1)
        self.delivery, self.members = self.world.delivery, self.world.members
        self.arrived: list[tuple[int, float]] = []
        self.delivery._deliver = lambda member, payload: self.arrived.append((member.index, self.world.now))
        self.vote: Prepare = FakeMessageFactory(self.members[0].address, Qbft()).prepare(1, 0, bytes(32))

    def send(self) -> list[int]:
        """Send a message of the first node and return its receivers."""
        self.arrived.clear()
        self.delivery.send(self.members[0], self.vote, self.members)
        self.world.run(self.world.now + 10.0)
        return sorted(index for index, _ in self.arrived)


def test_all_other_members_receive_a_message_within_the_link_delay() -> None:
    network = RecordedNetwork()
    network.delivery.link = LinkQuality(0.5, 1.5)
    assert network.send() == [1, 2, 3]
    assert all(0.5 <= at <= 1.5 for _, at in network.arrived)


def test_partitions_missing_links_filters_and_losses_keep_messages_from_arriving() -> None:
    network = RecordedNetwork()
    network.world.divide((0, 0, 1, 0))
    assert network.send() == [1, 3]
    network.delivery.missing_links = {frozenset((0, 3))}
    assert network.send() == [1]
    network.world.reunite()
    network.delivery.missing_links = set()
    network.delivery.filter = lambda sender, receiver, payload: receiver != 1
    assert network.send() == [2, 3]
    network.delivery.filter = None
    network.delivery.extra_loss = {Prepare: 1.0}
    assert network.send() == []
    network.delivery.extra_loss = {Commit: 1.0}
    assert network.send() == [1, 2, 3]


def test_a_message_may_arrive_twice() -> None:
    network = RecordedNetwork()
    network.delivery.link = LinkQuality(0.001, 0.002, duplication=1.0)
    assert network.send() == [1, 1, 2, 2, 3, 3]


def test_what_is_passed_on_goes_neither_to_author_nor_to_peer() -> None:
    network = RecordedNetwork()
    first, second, third, _ = network.members
    order = RelayMessage(network.vote, (third.address, first.address))
    network.delivery.relay(second, order, network.members)
    network.delivery.gossips = False
    network.delivery.relay(second, order, network.members)
    network.world.run(1.0)
    assert [index for index, _ in network.arrived] == [3]


def test_members_with_a_link_to_the_author_get_no_relays_if_links_are_reported() -> None:
    network = RecordedNetwork()
    first, second, _, fourth = network.members
    network.delivery.reports_links = True
    order = RelayMessage(network.vote, (first.address,))
    network.delivery.relay(second, order, network.members)
    assert network.delivery.count == 0
    network.delivery.missing_links.add(frozenset((first.index, fourth.index)))
    network.delivery.relay(second, order, network.members)
    network.world.run(1.0)
    assert [index for index, _ in network.arrived] == [3]
    assert network.delivery.count == 1
