"""Drives the machines of a simulated network: timers, disk, blocks and crashes.

The driver runs effects in order, like `ophion.producer.bft_driver`. A crash can happen between two effects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ophion.consensus.bft.events import (
    BftEffect,
    BftEvent,
    BlockTimer,
    BuildProposal,
    CancelTimer,
    CatchUp,
    CheckProposal,
    Head,
    ImportBlock,
    Multicast,
    NewHead,
    ProposalBuilt,
    ProposalChecked,
    RelayMessage,
    ResendMessage,
    SetTimer,
    StoreVotes,
    TaskFailed,
)
from ophion.consensus.bft.message_buffer import MessageLimits
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.state_machine import DEFAULT_LIMITS, BftStateMachine
from ophion.testing.simulation.fake_crypto import Content, FakeMessageFactory, has_other_body, stand_in_block
from ophion.testing.simulation.simulated_node import FinalBlock, SimulatedMember

if TYPE_CHECKING:
    from ophion.testing.simulation.network import SimulatedNetwork

LONGEST_DYING_S: Final = 0.5
ALLOWED_LEAD_S: Final = 1

DEFAULT_TIMING: Final = RoundTiming(1.0, 1.5, 6.0)
"""Short timeouts with an early cap, so that a run has many rounds and reaches the cap."""


class NetworkSettings(Struct, frozen=True):
    """Settings that all nodes share."""

    rules: ProtocolRules
    validators: int
    timing: RoundTiming = DEFAULT_TIMING
    limits: MessageLimits = DEFAULT_LIMITS
    standby: int = 0
    """Number of nodes that are not validators at the start."""
    epoch_length: int = 30_000
    follows_others: bool = True
    passes_over: bool = True


class Driver:
    """Drives the machines of all nodes."""

    def __init__(self, world: SimulatedNetwork) -> None:
        self.slow_work_s = 0.0
        """Maximum time for building, checking or importing a block."""
        self.has_load = True
        """Whether blocks contain transactions."""
        self._world = world
        self._network = world.network
        self._event_queue = world.event_queue
        self._checker = world.checker
        self._blocks_built = 0

    # --- starts and stops -----------------------------------------------------------------------

    def boot(self, member: SimulatedMember) -> None:
        """Start a node with the content of its disk."""
        network = self._network
        factory = FakeMessageFactory(member.address, network.rules)
        member.machine = BftStateMachine(
            network.rules,
            factory,
            network.limits,
            network.follows_others,
            member.durable_votes,
            network.passes_over,
            is_blank=member.durable_votes is None,
        )
        member.dies_after = None
        self._world.add_note(f"{member.name} starts at height {member.height}")
        self.report_head(member)

    def stop(self, member: SimulatedMember) -> None:
        """Stop a node between two steps."""
        if member.machine is not None:
            member.machine = None
            member.timers.clear()
            member.target = 0
            member.dies_after = None
            self._world.add_note(f"{member.name} stops")
            self._world.connection_events.down(member, self._world.members)

    def begin_outage(self, member: SimulatedMember) -> None:
        """Stop a node after a random number of further effects, like a crash."""
        if member.machine is not None:
            member.dies_after = self._world.rng.randint(0, 4)
            self._event_queue.add(
                self._event_queue.now + LONGEST_DYING_S, lambda dying, _: self._finish_dying(dying), member, None
            )

    def _finish_dying(self, member: SimulatedMember) -> None:
        if member.dies_after is not None:
            self.stop(member)

    # --- events and effects ---------------------------------------------------------------------

    def handle(self, member: SimulatedMember, event: BftEvent) -> None:
        """Pass an event to a node's machine and run the effects."""
        machine = member.machine
        if machine is None:
            return
        effects = machine.handle(event, self._event_queue.now + member.skew_s)
        self._checker.on_step(member, machine, self._event_queue.now)
        for effect in effects:
            if member.dies_after is not None:
                if member.dies_after == 0:
                    self.stop(member)
                    return
                member.dies_after -= 1
            _EFFECTS[type(effect)](self, member, effect)

    def extend(self, member: SimulatedMember, block: FinalBlock) -> bool:
        """Append a block to a node's chain; return whether the block extends that chain."""
        if block.parent != member.head.hash or not block.is_sealed_by(member.head.tally.validators):
            return False
        member.chain.append(block)
        self._checker.on_final(member, block, self._event_queue.now)
        if self._world.trace is not None:
            self._world.trace.final(self._event_queue.now, member.index, block)
        return True

    def report_head(self, member: SimulatedMember) -> None:
        """Pass the current head of a node to its machine."""
        head = member.head
        place = Head(head.height, head.hash, head.timestamp, head.builder)
        self.handle(member, NewHead(place, head.tally.validators, self._network.timing))

    def _multicast(self, member: SimulatedMember, effect: Multicast) -> None:
        world, message = self._world, effect.message
        self._checker.on_say(member, message, self._event_queue.now)
        if member.liar is not None:
            member.liar.say(message)
        else:
            world.delivery.send(member, message, world.validators_of(message.height, member))

    def _repeat(self, member: SimulatedMember, effect: ResendMessage) -> None:
        """Send an earlier message again to a node that may have missed it."""
        receivers = [other for other in self._world.members if other.address == effect.to]
        if member.liar is None:
            self._world.delivery.send(member, effect.message, receivers)

    def _relay(self, member: SimulatedMember, effect: RelayMessage) -> None:
        self._world.delivery.relay(member, effect, self._world.validators_of(effect.message.height, member))

    def _remember(self, member: SimulatedMember, effect: StoreVotes) -> None:
        member.durable_votes = effect.durable_votes

    def _set_timer(self, member: SimulatedMember, effect: SetTimer) -> None:
        at = max(self._event_queue.now, effect.at - member.skew_s)
        member.timers[effect.kind] = self._event_queue.add(at, self._fire, member, effect)

    def _cancel_timer(self, member: SimulatedMember, effect: CancelTimer) -> None:
        member.timers.pop(effect.kind, None)

    def _fire(self, member: SimulatedMember, effect: SetTimer) -> None:
        # a timer that was set again has a new number, so ignore the event with the old number
        if member.timers.get(effect.kind) == self._event_queue.current:
            del member.timers[effect.kind]
            event = effect.event
            if isinstance(event, BlockTimer):
                event = replace(event, is_pool_empty=not self.has_load)
            self.handle(member, event)

    def _build(self, member: SimulatedMember, effect: BuildProposal) -> None:
        self._blocks_built += 1
        vote = member.proposals.next_vote(lambda vote: member.head.tally.is_useful(member.address, vote))
        content = Content(effect.parent, effect.timestamp, self._blocks_built, vote=vote)
        block = stand_in_block(effect.height, member.address, content, effect.round)
        self._later(member, ProposalBuilt(effect.height, effect.round, block, not self.has_load))

    def _check(self, member: SimulatedMember, effect: CheckProposal) -> None:
        proposal = effect.proposal
        block = proposal.block
        is_body_wrong = has_other_body(block)
        problem = "wrong body" if is_body_wrong else self._problem(member, Content.decode(block.encoded))
        self._later(member, ProposalChecked(block.height, proposal.round, block.digest, problem, is_body_wrong))

    def _problem(self, member: SimulatedMember, content: Content) -> str | None:
        """Return the reason why a fake block is invalid; None if it is valid. Checks only the rules that apply to fake
        blocks.
        """
        head = member.head
        if content.parent != head.hash:
            return "wrong parent"
        if content.timestamp < head.timestamp + int(self._network.timing.period_s):
            return "too early"
        if content.timestamp > int(self._event_queue.now + member.skew_s) + ALLOWED_LEAD_S:
            return "in the future"
        return None if content.is_valid else "wrong state root"

    def _import(self, member: SimulatedMember, effect: ImportBlock) -> None:
        tally = member.head.tally
        block = FinalBlock.of(effect.block, effect.round, effect.seals, tally, self._network.epoch_length)
        self._checker.on_decision(member, block, self._event_queue.now)
        self._event_queue.add(self._event_queue.now + self._work(), self._finish_import, member, block)

    def _finish_import(self, member: SimulatedMember, block: FinalBlock) -> None:
        if member.machine is None or block.height <= member.height:
            return
        if not self.extend(member, block):
            self.handle(member, TaskFailed(block.height, block.round, "the block does not fit the chain"))
            return
        self._world.delivery.announce(member, block, self._world.members)
        self.report_head(member)

    def _catch_up(self, member: SimulatedMember, effect: CatchUp) -> None:
        self._world.syncing.aim(member, effect.height)

    def _later(self, member: SimulatedMember, answer: ProposalBuilt | ProposalChecked) -> None:
        self._event_queue.add(self._event_queue.now + self._work(), self.handle, member, answer)

    def _work(self) -> float:
        return self._world.rng.random() * self.slow_work_s if self.slow_work_s else 0.0


_EFFECTS: Final[dict[type[BftEffect], Callable[[Driver, SimulatedMember, Any], None]]] = {
    SetTimer: Driver._set_timer,
    CancelTimer: Driver._cancel_timer,
    StoreVotes: Driver._remember,
    Multicast: Driver._multicast,
    ResendMessage: Driver._repeat,
    RelayMessage: Driver._relay,
    BuildProposal: Driver._build,
    CheckProposal: Driver._check,
    ImportBlock: Driver._import,
    CatchUp: Driver._catch_up,
}
