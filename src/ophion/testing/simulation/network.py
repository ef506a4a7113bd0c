"""A network of real state machines on one clock, run by a seed or by a test.

    event_queue        virtual time
    message_delivery   messages and blocks
    driver             timers, disk and blocks of the machines
    links              connection events
    sync               blocks for nodes that are behind

The network replaces the parts of a node around each state machine, but not the state machine itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from ophion.consensus.bft.events import MessageReceived
from ophion.consensus.bft.messages import BftMessage, RoundChange
from ophion.consensus.validator_votes import Tally
from ophion.primitives.types import ZERO_ADDRESS, ZERO_HASH, Address
from ophion.testing.simulation.byzantine import Liar, LiarCoalition
from ophion.testing.simulation.connection_events import ConnectionEvents
from ophion.testing.simulation.driver import Driver, NetworkSettings
from ophion.testing.simulation.event_queue import EventQueue
from ophion.testing.simulation.fake_crypto import Content, has_other_body, stand_in_address, stand_in_block
from ophion.testing.simulation.fault_plan import Misconduct
from ophion.testing.simulation.invariants import Checker
from ophion.testing.simulation.message_delivery import MessageDelivery
from ophion.testing.simulation.simulated_node import FinalBlock, SimulatedMember
from ophion.testing.simulation.sync import Syncing
from ophion.testing.simulation.trace import Trace


class SimulatedNetwork:
    """A simulated network of nodes."""

    def __init__(
        self,
        network: NetworkSettings,
        seed: int = 0,
        misconduct: dict[int, tuple[Misconduct, ...]] | None = None,
        faulty: Iterable[int] = (),
        trace: Trace | None = None,
    ) -> None:
        """Create a network. `faulty` nodes may contradict their votes because they lose their disk."""
        self.network = network
        self.rng = Random(seed)
        self.trace = trace
        count = network.validators + network.standby
        genesis = _genesis(network.validators)
        self.members = [SimulatedMember(index, stand_in_address(index), genesis) for index in range(count)]
        self._by_address = {member.address: member for member in self.members}
        liars = misconduct or {}
        self.checker = Checker(network.rules, network.limits, count, frozenset(liars) | frozenset(faulty))
        self.event_queue = EventQueue()
        self.driver = Driver(self)
        self.connection_events = ConnectionEvents(self, seed)
        self.syncing = Syncing(self)
        self.delivery = MessageDelivery(self.event_queue, self.rng, trace, self._deliver, self.syncing.receive)
        coalition = LiarCoalition(frozenset(liars))
        for index, kinds in liars.items():
            member = self.members[index]
            member.liar = Liar(self, member, kinds, coalition, Random(seed * 31 + index))

    # --- control by tests -----------------------------------------------------------------------

    def start(self) -> None:
        """Start all nodes at once."""
        for member in self.members:
            self.driver.boot(member)

    def crash(self, index: int) -> None:
        """Stop a node between two steps."""
        self.driver.stop(self.members[index])

    def begin_outage(self, index: int) -> None:
        """Stop a node after a random number of further effects, like a crash."""
        self.driver.begin_outage(self.members[index])

    def restart(self, index: int, keeps_disk: bool = True) -> None:
        """Restart a node, with or without its disk."""
        member = self.members[index]
        if member.machine is not None:
            return
        if not keeps_disk:
            member.durable_votes = None
            del member.chain[1:]
        self.driver.boot(member)
        for other in self.members:
            self.syncing.introduce(member, other)
        self.connection_events.up(member, self.members)

    def divide(self, groups: Iterable[int]) -> None:
        """Partition the network. Only members with the same number in `groups` can communicate."""
        for member, group in zip(self.members, groups, strict=True):
            member.group = group
        for member in self.members:
            self.connection_events.down(
                member, [other for other in self.members[: member.index] if other.group != member.group]
            )
        self.add_note("the network is divided: " + " ".join(str(member.group) for member in self.members))

    def reunite(self) -> None:
        """End the partition; nodes exchange their heights."""
        for member in self.members:
            member.group = 0
        self.add_note("the network is whole again")
        self.introduce_all()
        for member in self.members:
            self.connection_events.up(member, self.members[: member.index])

    def introduce_all(self) -> None:
        """Exchange heights between all simulated nodes, as real nodes do when they connect."""
        for member in self.members:
            for other in self.members:
                self.syncing.introduce(member, other)

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Schedule an action at a virtual time."""
        self.event_queue.add(time, lambda _member, _payload: action(), self.members[0], None)

    def run(self, until: float, unless: Callable[[], bool] | None = None) -> bool:
        """Run until a time or until a rule is broken. Stops early and returns True when `unless` holds."""
        step = self.event_queue.step
        checker = self.checker
        while step(until):
            if checker.violations:
                return False
            if unless is not None and unless():
                return True
        self.event_queue.now = max(self.event_queue.now, until)
        return unless is not None and unless()

    # --- observations ---------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return self.event_queue.now

    @property
    def honest(self) -> list[SimulatedMember]:
        """Nodes that must not contradict their votes."""
        return [member for member in self.members if member.index not in self.checker.dishonest]

    def heights(self) -> list[int]:
        """Heights of the chains of all nodes."""
        return [member.height for member in self.members]

    def validators_of(self, height: int, member: SimulatedMember) -> list[SimulatedMember]:
        """Return the validators of a height, according to the chain of `member`."""
        known = member.chain[min(height - 1, member.height)].tally.validators
        return [self._by_address[address] for address in known if address in self._by_address]

    def add_note(self, text: str) -> None:
        """Add a note to the trace, if a trace is recorded."""
        if self.trace is not None:
            self.trace.add_note(self.now, text)

    def _deliver(self, member: SimulatedMember, payload: tuple[BftMessage, Address]) -> None:
        if member.machine is None:
            return
        message, peer = payload
        if isinstance(message, RoundChange) and message.block is not None and has_other_body(message.block):
            return  # drop the message, because a real node cannot decode it either (`MessageCodec.prepared_block`)
        self.driver.handle(member, MessageReceived(message, peer))
        if member.liar is not None:
            member.liar.observe(message)


def _genesis(validators: int) -> FinalBlock:
    listed = [stand_in_address(index) for index in range(validators)]
    return FinalBlock(stand_in_block(0, ZERO_ADDRESS, Content(ZERO_HASH, 0, 0)), 0, (), Tally.of(listed))
