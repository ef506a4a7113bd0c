"""The faults of a run, which the seed determines before the simulated network starts.

A run has a fault phase and a recovery phase. In the fault phase messages are delayed, lost, duplicated and reordered.
Nodes are partitioned, stop and restart, with or without their disk. After that the network must make blocks.
"""

from __future__ import annotations

from enum import Enum
from random import Random

from msgspec import Struct, field

from ophion.consensus.bft.messages import Commit, Prepare, Proposal, RoundChange
from ophion.consensus.bft.validator_set import tolerated_faults


class Misconduct(Enum):
    """Kinds of misbehaviour of a Byzantine node. Otherwise the node follows the protocol."""

    SILENCE = "silence"
    """The node sends nothing, permanently or for a while."""
    DOUBLE_PROPOSAL = "double proposal"
    """The node proposes one block to some nodes and another block to the other nodes."""
    EQUIVOCATION = "equivocation"
    """The node prepares and commits every block it receives, unchecked, in every round."""
    FORGED_SEALS = "forged seals"
    """The node commits with a seal of another node, or with an invalid seal."""
    STALE_ROUND_CHANGES = "stale round changes"
    """The node hides prepared blocks, requests rounds far ahead, and repeats old messages."""
    WITHHOLDING = "withholding"
    """The node sends each message to some nodes only."""
    BODY_SWAP = "body swap"
    """The node sends proposals and prepared blocks with a wrong body, both its own and those of other nodes."""
    WITHHELD_PROPOSALS = "withheld proposals"
    """The node votes like an honest node but never proposes."""
    OTHER_DIGESTS = "other digests"
    """The node prepares and commits blocks that do not exist."""
    REPLAY = "replay"
    """The node sends received messages again, at once and later, also to their authors."""


class LinkQuality(Struct, frozen=True):
    """Delay and loss of messages on a link."""

    min_delay_s: float
    max_delay_s: float
    slow_share: float = 0.0
    """Share of messages that take up to ten times as long as others."""
    loss: float = 0.0
    duplication: float = 0.0

    def fate(self, rng: Random) -> tuple[float, ...]:
        """Draw the delay in seconds of each copy of a message; empty if the message is lost."""
        if self.loss and rng.random() < self.loss:
            return ()
        delay = self._delay(rng)
        if self.duplication and rng.random() < self.duplication:
            return (delay, self._delay(rng))
        return (delay,)

    def _delay(self, rng: Random) -> float:
        delay = self.min_delay_s + rng.random() * (self.max_delay_s - self.min_delay_s)
        if self.slow_share and rng.random() < self.slow_share:
            delay *= 10.0 * rng.random()
        return delay


CALM = LinkQuality(0.002, 0.02)
"""Link quality of a healthy local network."""


class Partition(Struct, frozen=True):
    """A period in which only members of the same group can communicate."""

    start_s: float
    end_s: float
    groups: tuple[int, ...]
    """Group of each node, by index."""


class Outage(Struct, frozen=True):
    """One node stops in the middle of its effects and restarts later."""

    member: int
    start_s: float
    end_s: float
    keeps_disk: bool


class FaultPlan(Struct, frozen=True):
    """The faults of one seed."""

    storm_s: float
    link: LinkQuality
    gossips: bool
    """Whether nodes relay messages."""
    slow_work_s: float
    """Maximum time for building and checking a block."""
    extra_loss: dict[type, float] = field(default_factory=dict)
    """Additional loss per message type. For example, without commits many blocks are prepared and few decided."""
    partitions: tuple[Partition, ...] = ()
    outages: tuple[Outage, ...] = ()
    flaps: tuple[tuple[float, int, int], ...] = ()
    """Short connection failures: time and both nodes."""
    misconduct: dict[int, tuple[Misconduct, ...]] = field(default_factory=dict)
    """Kinds of misbehaviour of each Byzantine node."""

    @property
    def faulty(self) -> frozenset[int]:
        """Return the nodes that count as faulty: Byzantine nodes and nodes that lose their votes."""
        return frozenset(self.misconduct) | self.forgetful

    @property
    def forgetful(self) -> frozenset[int]:
        """Return the nodes that lose their disk."""
        return frozenset(outage.member for outage in self.outages if not outage.keeps_disk)


def draw_conditions(rng: Random, validators: int, byzantine: int, storm_s: float) -> FaultPlan:
    """Draw random faults with `byzantine` Byzantine nodes.

    Nodes that lose their disk also count towards f, since they may contradict their votes.
    """
    members = list(range(validators))
    liars = rng.sample(members, byzantine)
    spare = max(0, tolerated_faults(validators) - byzantine)
    honest = [member for member in members if member not in liars]
    forgetful = rng.sample(honest, rng.randint(0, spare))
    outages = [_draw_outage(rng, member, storm_s, keeps_disk=False) for member in forgetful]
    for _ in range(rng.choice((0, 0, 1, 2, 4, 8))):
        member = rng.choice(honest)
        outages.append(_draw_outage(rng, member, storm_s, keeps_disk=member not in forgetful))
    partitions = [_draw_partition(rng, validators, storm_s) for _ in range(rng.choice((0, 0, 1, 2, 4)))]
    scarce = rng.sample((Proposal, Prepare, Commit, RoundChange), rng.choice((0, 0, 1, 1, 2)))
    return FaultPlan(
        storm_s=storm_s,
        link=LinkQuality(
            min_delay_s=0.001,
            max_delay_s=rng.choice((0.01, 0.1, 0.5, 2.0)),
            slow_share=rng.choice((0.0, 0.02, 0.1)),
            loss=rng.choice((0.0, 0.0, 0.02, 0.1, 0.3)),
            duplication=rng.choice((0.0, 0.05, 0.3)),
        ),
        gossips=rng.random() < 0.25,
        slow_work_s=rng.choice((0.0, 0.05, 0.05, 1.0, 4.0)),
        extra_loss={kind: rng.choice((0.3, 0.6, 0.9)) for kind in scarce},
        partitions=tuple(partitions),
        outages=tuple(outages),
        misconduct={member: _draw_misconduct(rng, byzantine > tolerated_faults(validators)) for member in liars},
        flaps=_draw_flaps(rng, validators, storm_s),
    )


def _draw_outage(rng: Random, member: int, storm_s: float, keeps_disk: bool) -> Outage:
    start = rng.random() * storm_s
    return Outage(member, start, min(storm_s, start + rng.random() * storm_s / 3), keeps_disk)


def _draw_partition(rng: Random, validators: int, storm_s: float) -> Partition:
    start = rng.random() * storm_s * 0.8
    end = min(storm_s, start + rng.random() * storm_s / 2)
    count = rng.choice((2, 2, 3))
    return Partition(start, end, tuple(rng.randrange(count) for _ in range(validators)))


def _draw_flaps(rng: Random, validators: int, storm_s: float) -> tuple[tuple[float, int, int], ...]:
    if validators < 2:
        return ()
    count = rng.choice((0, 0, 3, 30))
    pairs = [(rng.random() * storm_s, rng.sample(range(validators), 2)) for _ in range(count)]
    return tuple((at, first, second) for at, (first, second) in pairs)


def _draw_misconduct(rng: Random, are_too_many: bool) -> tuple[Misconduct, ...]:
    """Draw the misbehaviour of a node: either silence, or a combination of other kinds. If more than f nodes are
    Byzantine, they try to cause a fork.
    """
    if rng.random() < 0.15 and not are_too_many:
        return (Misconduct.SILENCE,)
    kinds = list(Misconduct)
    chosen = set(rng.sample(kinds, rng.randint(1, 3)))
    if are_too_many or rng.random() < 0.5:
        chosen |= {Misconduct.DOUBLE_PROPOSAL, Misconduct.EQUIVOCATION}
    return tuple(kind for kind in kinds if kind in chosen)
