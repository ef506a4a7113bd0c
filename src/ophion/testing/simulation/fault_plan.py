"""How bad things get: everything a seed decides before a simulated network starts.

A run has a storm and a calm. During the storm messages are delayed, lost, doubled and overtaken, members are cut off,
stop and come back, with or without their disk. Then the network heals, and from that moment it owes us blocks.
"""

from __future__ import annotations

from enum import Enum
from random import Random

from msgspec import Struct, field

from ophion.consensus.bft.messages import Commit, Prepare, Proposal, RoundChange
from ophion.consensus.bft.validator_set import tolerated_faults


class Misconduct(Enum):
    """What a misbehaving member does, besides following the protocol."""

    SILENCE = "silence"
    """Says nothing, or falls silent for a while."""
    DOUBLE_PROPOSAL = "double proposal"
    """Proposes one block to some members and another one to the others."""
    EQUIVOCATION = "equivocation"
    """Prepares and commits every block it hears of, without checking, in every round."""
    FORGED_SEALS = "forged seals"
    """Commits with a seal of another member or of nothing."""
    STALE_ROUND_CHANGES = "stale round changes"
    """Hides what it has prepared, asks for rounds far ahead, and repeats old messages."""
    WITHHOLDING = "withholding"
    """Sends each message to some members only."""
    BODY_SWAP = "body swap"
    """Sends proposals and prepared blocks, of others too, with a body that is not theirs."""
    WITHHELD_PROPOSALS = "withheld proposals"
    """Votes like an honest member and never proposes."""
    OTHER_DIGESTS = "other digests"
    """Prepares and commits blocks that do not exist."""
    REPLAY = "replay"
    """Sends back what it hears, to its authors too, at once and again later."""


class LinkQuality(Struct, frozen=True):
    """What happens to one message on its way."""

    min_delay_s: float
    max_delay_s: float
    slow_share: float = 0.0
    """Share of messages that take up to ten times as long."""
    loss: float = 0.0
    duplication: float = 0.0

    def fate(self, rng: Random) -> tuple[float, ...]:
        """When copies of a message arrive, in seconds from now; empty when it is lost."""
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
"""A local network in good health."""


class Partition(Struct, frozen=True):
    """For a while only members of one group hear each other."""

    start_s: float
    end_s: float
    groups: tuple[int, ...]
    """Group of each member, by index."""


class Outage(Struct, frozen=True):
    """One member stops, somewhere within whatever it is doing, and comes back."""

    member: int
    start_s: float
    end_s: float
    keeps_disk: bool


class FaultPlan(Struct, frozen=True):
    """One seed's weather."""

    storm_s: float
    link: LinkQuality
    gossips: bool
    """Whether members pass on what they hear."""
    slow_work_s: float
    """Building and checking a block takes up to this long."""
    extra_loss: dict[type, float] = field(default_factory=dict)
    """Share of messages of a kind lost on top; without commits, say, many blocks are prepared and few decided."""
    partitions: tuple[Partition, ...] = ()
    outages: tuple[Outage, ...] = ()
    flaps: tuple[tuple[float, int, int], ...] = ()
    """Connections that break for a moment: when, and between whom."""
    misconduct: dict[int, tuple[Misconduct, ...]] = field(default_factory=dict)
    """What each misbehaving member does."""

    @property
    def faulty(self) -> frozenset[int]:
        """Members that count as faulty: those that misbehave, and those that forget what they promised."""
        return frozenset(self.misconduct) | self.forgetful

    @property
    def forgetful(self) -> frozenset[int]:
        """Members that lose their disk."""
        return frozenset(outage.member for outage in self.outages if not outage.keeps_disk)


def draw_conditions(rng: Random, validators: int, byzantine: int, storm_s: float) -> FaultPlan:
    """Random conditions with `byzantine` misbehaving members.

    Members that lose their disk are drawn from what is left of f, since a member without memory may contradict itself.
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
    """Silence alone is one kind of liar; the others combine their tricks. Liars beyond f go for a fork."""
    if rng.random() < 0.15 and not are_too_many:
        return (Misconduct.SILENCE,)
    kinds = list(Misconduct)
    chosen = set(rng.sample(kinds, rng.randint(1, 3)))
    if are_too_many or rng.random() < 0.5:
        chosen |= {Misconduct.DOUBLE_PROPOSAL, Misconduct.EQUIVOCATION}
    return tuple(kind for kind in kinds if kind in chosen)
