"""Tests receivers and times of delivered messages."""

from __future__ import annotations

from ophion.consensus.bft.events import RelayMessage
from ophion.consensus.bft.messages import Commit, Prepare
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.fake_crypto import FakeMessageFactory
from ophion.testing.simulation.fault_plan import LinkQuality
from ophion.testing.simulation.network import SimulatedNetwork


class Office:
    """Four nodes that are down. The test only records arriving messages."""

    def __init__(self) -> None:
        self.world = SimulatedNetwork(NetworkSettings(Qbft(), 4), 1)
        self.mail, self.members = self.world.mail, self.world.members
        self.arrived: list[tuple[int, float]] = []
        self.mail._deliver = lambda member, payload: self.arrived.append((member.index, self.world.now))
        self.vote: Prepare = FakeMessageFactory(self.members[0].address, Qbft()).prepare(1, 0, bytes(32))

    def send(self) -> list[int]:
        """Send a message of the first node and return its receivers."""
        self.arrived.clear()
        self.mail.send(self.members[0], self.vote, self.members)
        self.world.run(self.world.now + 10.0)
        return sorted(index for index, _ in self.arrived)


def test_all_other_members_receive_a_message_within_the_link_delay() -> None:
    office = Office()
    office.mail.link = LinkQuality(0.5, 1.5)
    assert office.send() == [1, 2, 3]
    assert all(0.5 <= at <= 1.5 for _, at in office.arrived)


def test_partitions_missing_links_filters_and_losses_keep_messages_from_arriving() -> None:
    office = Office()
    office.world.divide((0, 0, 1, 0))
    assert office.send() == [1, 3]
    office.mail.missing_links = {frozenset((0, 3))}
    assert office.send() == [1]
    office.world.reunite()
    office.mail.missing_links = set()
    office.mail.filter = lambda sender, receiver, letter: receiver != 1
    assert office.send() == [2, 3]
    office.mail.filter = None
    office.mail.extra_loss = {Prepare: 1.0}
    assert office.send() == []
    office.mail.extra_loss = {Commit: 1.0}
    assert office.send() == [1, 2, 3]


def test_a_message_may_arrive_twice() -> None:
    office = Office()
    office.mail.link = LinkQuality(0.001, 0.002, duplication=1.0)
    assert office.send() == [1, 1, 2, 2, 3, 3]


def test_what_is_passed_on_goes_neither_to_author_nor_to_peer() -> None:
    office = Office()
    first, second, third, _ = office.members
    order = RelayMessage(office.vote, (third.address, first.address))
    office.mail.relay(second, order, office.members)
    office.mail.gossips = False
    office.mail.relay(second, order, office.members)
    office.world.run(1.0)
    assert [index for index, _ in office.arrived] == [3]


def test_members_with_a_link_to_the_author_get_no_relays_if_links_are_reported() -> None:
    office = Office()
    first, second, _, fourth = office.members
    office.mail.reports_links = True
    order = RelayMessage(office.vote, (first.address,))
    office.mail.relay(second, order, office.members)
    assert office.mail.count == 0
    office.mail.missing_links.add(frozenset((first.index, fourth.index)))
    office.mail.relay(second, order, office.members)
    office.world.run(1.0)
    assert [index for index, _ in office.arrived] == [3]
    assert office.mail.count == 1
