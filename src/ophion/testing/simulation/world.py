"""Members, messages and time: one heap of events around real machines.

The world does for each machine what a node's driver does (timers, disk, network, chain) and nothing of what the machine
does. It can be left to the weather of a seed, or be moved by hand: `crash`, `restart`, `divide`, `heal`, `run`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeAlias

from ophion.consensus.bft.dialect import Rules
from ophion.consensus.bft.events import (
    BftEffect,
    BftEvent,
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
    Received,
    Relay,
    Remember,
    SetTimer,
    TaskFailed,
)
from ophion.consensus.bft.inbox import InboxLimits
from ophion.consensus.bft.machine import DEFAULT_LIMITS, BftMachine
from ophion.consensus.bft.messages import BftMessage
from ophion.consensus.bft.timing import Timing
from ophion.consensus.voting import Tally
from ophion.primitives.types import ZERO_ADDRESS, ZERO_HASH, Address
from ophion.testing.simulation.byzantine import Conspiracy, Liar
from ophion.testing.simulation.chain import FinalBlock, Member
from ophion.testing.simulation.conditions import CALM, Link, Misconduct
from ophion.testing.simulation.invariants import Checker
from ophion.testing.simulation.stand_ins import (
    Content,
    StandInScribe,
    stand_in_address,
    stand_in_block,
)
from ophion.testing.simulation.trace import Trace

SYNC_RETRY_S: Final = 1.0
LONGEST_DYING_S: Final = 0.5
ALLOWED_LEAD_S: Final = 1

DEFAULT_TIMING: Final = Timing(1.0, 1.5, 6.0)
"""Short rounds and an early cap, so that a run sees many of both."""

Letter: TypeAlias = "BftMessage | FinalBlock"
"""Whatever travels between members."""


@dataclass(frozen=True, slots=True)
class Network:
    """What all members agree on."""

    rules: Rules
    validators: int
    timing: Timing = DEFAULT_TIMING
    limits: InboxLimits = DEFAULT_LIMITS
    standby: int = 0
    """Members that are no validators at the start."""
    epoch_length: int = 30_000
    follows_others: bool = True


class World:
    """A network of members under one clock."""

    def __init__(
        self,
        network: Network,
        seed: int = 0,
        misconduct: dict[int, tuple[Misconduct, ...]] | None = None,
        faulty: Iterable[int] = (),
        trace: Trace | None = None,
    ) -> None:
        """`faulty` are members that are expected to break promises without being told to: those who lose their disk."""
        self.network = network
        self.rng = Random(seed)
        self.now = 0.0
        self.link: Link = CALM
        self.gossips = True
        self.slow_work_s = 0.0
        self.extra_loss: dict[type, float] = {}
        """Share of messages of a kind that is lost, whatever the link does."""
        self.has_load = True
        """Whether blocks have transactions."""
        self.filter: Callable[[int, int, Letter], bool] | None = None
        """Drops a message from one member to another when it answers false; for scripted stories."""
        self.missing_links: set[frozenset[int]] = set()
        """Pairs that are not connected at all."""
        self.trace = trace
        self.steps = 0
        self.blocks_built = 0
        self._heap: list[tuple[float, int, Callable[[Member, Any], None], Member, Any]] = []
        self._scheduled = 0
        self._running = 0
        """Number of the event that is being handled; a timer that was set again since has another one."""
        count = network.validators + network.standby
        genesis = self._genesis()
        self.members = [Member(index, stand_in_address(index), genesis) for index in range(count)]
        self._by_address = {member.address: member for member in self.members}
        liars = misconduct or {}
        dishonest = frozenset(liars) | frozenset(faulty)
        self.checker = Checker(network.rules, network.limits, count, dishonest)
        conspiracy = Conspiracy(frozenset(liars))
        for index, kinds in liars.items():
            member = self.members[index]
            member.liar = Liar(self, member, kinds, conspiracy, Random(seed * 31 + index))

    # --- by hand --------------------------------------------------------------------------------

    def start(self) -> None:
        """All members come up at once."""
        for member in self.members:
            self._boot(member)

    def crash(self, index: int) -> None:
        """A member stops between two steps."""
        self._die(self.members[index])

    def restart(self, index: int, keeps_disk: bool = True) -> None:
        """A member comes back, with what it had stored or with nothing."""
        member = self.members[index]
        if member.machine is not None:
            return
        if not keeps_disk:
            member.memory = None
            del member.chain[1:]
        self._boot(member)
        for other in self.members:
            self._introduce(member, other)

    def divide(self, groups: Iterable[int]) -> None:
        """Only members with the same number hear each other from now on."""
        for member, group in zip(self.members, groups, strict=True):
            member.group = group
        self._tell("the network is divided: " + " ".join(str(member.group) for member in self.members))

    def reunite(self) -> None:
        """All members hear each other again, and tell each other how far they are."""
        for member in self.members:
            member.group = 0
        self._tell("the network is whole again")
        self.introduce_all()

    def introduce_all(self) -> None:
        """Everybody tells everybody its height, as nodes do when they connect."""
        for member in self.members:
            for other in self.members:
                self._introduce(member, other)

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Do something at a moment of the run."""
        self._schedule(time, lambda _member, _payload: action(), self.members[0], None)

    def run(self, until: float, unless: Callable[[], bool] | None = None) -> bool:
        """Let time pass to `until`, or until `unless` holds or a rule is broken; whether `unless` held."""
        heap = self._heap
        checker = self.checker
        while heap and heap[0][0] <= until:
            self.now, self._running, action, member, payload = heapq.heappop(heap)
            self.steps += 1
            action(member, payload)
            if checker.violations:
                return False
            if unless is not None and unless():
                return True
        self.now = max(self.now, until)
        return unless is not None and unless()

    @property
    def honest(self) -> list[Member]:
        """Members that are expected to keep their promises."""
        return [member for member in self.members if member.index not in self.checker.dishonest]

    def heights(self) -> list[int]:
        """Height of each member's chain."""
        return [member.height for member in self.members]

    # --- network --------------------------------------------------------------------------------

    def are_connected(self, first: Member, second: Member) -> bool:
        """Whether a message between the two can arrive at all."""
        return first.group == second.group and frozenset((first.index, second.index)) not in self.missing_links

    def send(self, sender: Member, message: BftMessage, receivers: Iterable[Member]) -> None:
        """Give a message to the network, once for each receiver."""
        fates: dict[int, float | None] = {}
        for receiver in receivers:
            if receiver is sender:
                continue
            delays = self._fate(sender, receiver, message)
            fates[receiver.index] = min(delays) if delays else None
            for delay in delays:
                self._schedule(self.now + delay, self._deliver, receiver, (message, sender.address))
        if self.trace is not None:
            self.trace.message(self.now, sender.index, message, fates)

    def validators_of(self, height: int, member: Member) -> list[Member]:
        """The members that decide a height, as far as `member` knows."""
        known = member.chain[min(height - 1, member.height)].tally.validators
        return [self._by_address[address] for address in known if address in self._by_address]

    def announce(self, sender: Member, block: FinalBlock) -> None:
        """Offer a finished block to everybody."""
        for receiver in self.members:
            if receiver is not sender:
                for delay in self._fate(sender, receiver, block):
                    self._schedule(self.now + delay, self._receive_block, receiver, block)

    def _fate(self, sender: Member, receiver: Member, letter: Letter) -> tuple[float, ...]:
        if not self.are_connected(sender, receiver):
            return ()
        if self.filter is not None and not self.filter(sender.index, receiver.index, letter):
            return ()
        if self.extra_loss and self.rng.random() < self.extra_loss.get(type(letter), 0.0):
            return ()
        return self.link.fate(self.rng)

    def _deliver(self, member: Member, payload: tuple[BftMessage, Address]) -> None:
        if member.machine is None:
            return
        message, peer = payload
        self._handle(member, Received(message, peer))
        if member.liar is not None:
            member.liar.hear(message)

    def _receive_block(self, member: Member, block: FinalBlock) -> None:
        if member.machine is None or block.height <= member.height:
            return
        if block.height == member.height + 1:
            if self._extend(member, block):
                self._report_head(member)
        else:
            self._aim(member, block.height)

    def _introduce(self, member: Member, other: Member) -> None:
        if member is not other and self.are_connected(member, other) and member.machine and other.machine:
            self._aim(member, other.height)
            self._aim(other, member.height)

    # --- synchronisation ------------------------------------------------------------------------

    def _aim(self, member: Member, height: int) -> None:
        """A member learns that somebody is that far."""
        if height > member.height and height > member.target:
            if member.target <= member.height:
                self._schedule(self.now + CALM.max_delay_s, self._synchronise, member, None)
            member.target = height

    def _synchronise(self, member: Member, _payload: None) -> None:
        """Fetch blocks from somebody who has more; try again until the target is reached."""
        if member.machine is None or member.target <= member.height:
            return
        better = [
            other
            for other in self.members
            if other.machine is not None and other.height > member.height and self.are_connected(member, other)
        ]
        if better:
            source = self.rng.choice(better)
            grown = False
            for block in source.chain[member.height + 1 :]:
                if not self._extend(member, block):
                    break
                grown = True
            if grown:
                self._report_head(member)
        if member.target > member.height:
            self._schedule(self.now + SYNC_RETRY_S, self._synchronise, member, None)

    def _extend(self, member: Member, block: FinalBlock) -> bool:
        """Put a block on a member's chain if it belongs there; whether it did."""
        if block.parent != member.head.hash or not block.is_sealed_by(member.head.tally.validators):
            return False
        member.chain.append(block)
        self.checker.on_final(member, block, self.now)
        if self.trace is not None:
            self.trace.final(self.now, member.index, block)
        return True

    def _report_head(self, member: Member) -> None:
        head = member.head
        event = NewHead(
            Head(head.height, head.hash, head.timestamp, head.builder), head.tally.validators, self.network.timing
        )
        self._handle(member, event)

    # --- driving a machine ----------------------------------------------------------------------

    def _boot(self, member: Member) -> None:
        scribe = StandInScribe(member.address, self.network.rules)
        member.machine = BftMachine(
            self.network.rules, scribe, self.network.limits, self.network.follows_others, member.memory
        )
        member.dies_after = None
        self._tell(f"{member.name} starts at height {member.height}")
        self._report_head(member)

    def _die(self, member: Member) -> None:
        if member.machine is not None:
            member.machine = None
            member.timers.clear()
            member.target = 0
            member.dies_after = None
            self._tell(f"{member.name} stops")

    def begin_outage(self, index: int) -> None:
        """Let a member stop in the middle of what it is told to do next."""
        member = self.members[index]
        if member.machine is not None:
            member.dies_after = self.rng.randint(0, 4)
            self._schedule(self.now + LONGEST_DYING_S, lambda dying, _: self._finish_dying(dying), member, None)

    def _finish_dying(self, member: Member) -> None:
        if member.dies_after is not None:
            self._die(member)

    def _handle(self, member: Member, event: BftEvent) -> None:
        machine = member.machine
        if machine is None:
            return
        effects = machine.handle(event, self.now + member.skew_s)
        self.checker.on_step(member, machine, self.now)
        for effect in effects:
            if member.dies_after is not None:
                if member.dies_after == 0:
                    self._die(member)
                    return
                member.dies_after -= 1
            _EFFECTS[type(effect)](self, member, effect)

    def _multicast(self, member: Member, effect: Multicast) -> None:
        self.checker.on_say(member, effect.message, self.now)
        if member.liar is not None:
            member.liar.say(effect.message)
        else:
            self.send(member, effect.message, self.validators_of(effect.message.height, member))

    def _relay(self, member: Member, effect: Relay) -> None:
        if not self.gossips:
            return
        message = effect.message
        for receiver in self.validators_of(message.height, member):
            if receiver is not member and receiver.address not in effect.exclude:
                for delay in self._fate(member, receiver, message):
                    self._schedule(self.now + delay, self._deliver, receiver, (message, member.address))

    def _remember(self, member: Member, effect: Remember) -> None:
        member.memory = effect.memory

    def _set_timer(self, member: Member, effect: SetTimer) -> None:
        at = max(self.now, effect.at - member.skew_s)
        token = self._schedule(at, self._fire, member, effect)
        member.timers[effect.kind] = token

    def _cancel_timer(self, member: Member, effect: CancelTimer) -> None:
        member.timers.pop(effect.kind, None)

    def _fire(self, member: Member, effect: SetTimer) -> None:
        if member.timers.get(effect.kind) == self._running:
            del member.timers[effect.kind]
            self._handle(member, effect.event)

    def _build(self, member: Member, effect: BuildProposal) -> None:
        self.blocks_built += 1
        vote = member.proposals.next_vote(lambda vote: member.head.tally.is_useful(member.address, vote))
        content = Content(effect.parent, effect.timestamp, self.blocks_built, vote=vote)
        block = stand_in_block(effect.height, member.address, content, effect.round)
        event = ProposalBuilt(effect.height, effect.round, block, not self.has_load)
        self._schedule(self.now + self._work(), self._answer, member, event)

    def _check(self, member: Member, effect: CheckProposal) -> None:
        proposal = effect.proposal
        problem = self._problem(member, Content.decode(proposal.block.encoded))
        event = ProposalChecked(proposal.height, proposal.round, proposal.block.digest, problem)
        self._schedule(self.now + self._work(), self._answer, member, event)

    def _problem(self, member: Member, content: Content) -> str | None:
        """The light header rules and the execution, as far as stand-ins have them."""
        head = member.head
        if content.parent != head.hash:
            return "wrong parent"
        if content.timestamp < head.timestamp + int(self.network.timing.period_s):
            return "too early"
        if content.timestamp > int(self.now + member.skew_s) + ALLOWED_LEAD_S:
            return "in the future"
        return None if content.is_valid else "wrong state root"

    def _answer(self, member: Member, event: ProposalBuilt | ProposalChecked) -> None:
        self._handle(member, event)

    def _import(self, member: Member, effect: ImportBlock) -> None:
        tally = member.head.tally
        block = FinalBlock.of(effect.block, effect.round, effect.seals, tally, self.network.epoch_length)
        self.checker.on_decision(member, block, self.now)
        self._schedule(self.now + self._work(), self._finish_import, member, block)

    def _finish_import(self, member: Member, block: FinalBlock) -> None:
        if member.machine is None or block.height <= member.height:
            return
        if not self._extend(member, block):
            self._handle(member, TaskFailed(block.height, block.round, "the block does not fit the chain"))
            return
        self.announce(member, block)
        self._report_head(member)

    def _catch_up(self, member: Member, effect: CatchUp) -> None:
        self._aim(member, effect.height)

    # --- pieces ---------------------------------------------------------------------------------

    def _work(self) -> float:
        return self.rng.random() * self.slow_work_s if self.slow_work_s else 0.0

    def _schedule(self, at: float, action: Callable[[Member, Any], None], member: Member, payload: Any) -> int:
        self._scheduled += 1
        heapq.heappush(self._heap, (at, self._scheduled, action, member, payload))
        return self._scheduled

    def _genesis(self) -> FinalBlock:
        validators = [stand_in_address(index) for index in range(self.network.validators)]
        genesis = stand_in_block(0, ZERO_ADDRESS, Content(ZERO_HASH, 0, 0))
        return FinalBlock(genesis, 0, (), Tally.of(validators))

    def _tell(self, text: str) -> None:
        if self.trace is not None:
            self.trace.note(self.now, text)


_EFFECTS: dict[type[BftEffect], Callable[[World, Member, Any], None]] = {
    SetTimer: World._set_timer,
    CancelTimer: World._cancel_timer,
    Remember: World._remember,
    Multicast: World._multicast,
    Relay: World._relay,
    BuildProposal: World._build,
    CheckProposal: World._check,
    ImportBlock: World._import,
    CatchUp: World._catch_up,
}
