"""Runs one seed or many, and reports the results.

`run_seed` runs one seed: a fault phase, recovery, then a check that the chain grows. `run_many` runs a range of seeds
in several processes. Both are deterministic.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Final

from msgspec import Struct, field

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.validator_set import tolerated_faults
from ophion.testing.simulation.clique_runs import run_clique_seed
from ophion.testing.simulation.driver import DEFAULT_TIMING, NetworkSettings
from ophion.testing.simulation.fault_plan import CALM, FaultPlan, draw_conditions
from ophion.testing.simulation.invariants import Violation
from ophion.testing.simulation.network import SimulatedNetwork
from ophion.testing.simulation.trace import Trace

RULES: Final[dict[str, ProtocolRules]] = {"ibft2": Ibft2(), "qbft": Qbft()}
CLIQUE: Final = "clique"
PROTOCOLS: Final = (*RULES, CLIQUE)
BLOCKS_AFTER_HEALING: Final = 3
_SEEDS_PER_TASK: Final = 8


class SeedOptions(Struct, frozen=True):
    """Options shared by all seeds of a run."""

    protocol: str = "ibft2"
    validators: int = 4
    byzantine: int | None = None
    """Number of Byzantine nodes. If None, the seed determines a number up to f."""
    storm_s: float = 20.0
    timing: RoundTiming = DEFAULT_TIMING
    passes_over: bool = True
    """Whether nodes skip the rounds of offline proposers."""

    @property
    def growth_limit_s(self) -> float:
        """Return the maximum time to the first block after recovery.

        Timeouts double up to the cap. Then nodes need two timeouts to reach the same round. After that, at most f
        Byzantine and as many late honest nodes propose before an honest proposal arrives.
        """
        doublings = math.ceil(math.log2(max(1.0, self.timing.max_timeout_s / self.timing.request_timeout_s)))
        rounds = doublings + 3 + tolerated_faults(self.validators)
        return rounds * self.timing.max_timeout_s


class SeedOutcome(Struct, frozen=True):
    """Result of the run of one seed."""

    seed: int
    blocks: int
    steps: int
    violations: tuple[Violation, ...]
    highest_round: int
    healing_s: float
    """Time from the end of the faults to the first new block on every honest chain."""
    messages_per_block: float = 0.0
    """Consensus messages of all members per block, after the first block without faults."""


class SeedSummary(Struct):
    """Results of simulation runs with many seeds, added up."""

    seeds: int = 0
    blocks: int = 0
    steps: int = 0
    failures: list[SeedOutcome] = field(default_factory=list)
    """Outcomes of seeds that broke a rule."""
    slowest_healing_s: float = 0.0
    highest_round: int = 0
    messages_per_block: float = 0.0
    """Consensus messages per block, as the mean over the seeds."""

    def add(self, outcome: SeedOutcome) -> None:
        """Add the outcome of one seed."""
        self.seeds += 1
        self.messages_per_block += (outcome.messages_per_block - self.messages_per_block) / self.seeds
        self.blocks += outcome.blocks
        self.steps += outcome.steps
        if math.isfinite(outcome.healing_s):
            self.slowest_healing_s = max(self.slowest_healing_s, outcome.healing_s)
        self.highest_round = max(self.highest_round, outcome.highest_round)
        if outcome.violations:
            self.failures.append(outcome)


def conditions_of(seed: int, options: SeedOptions) -> FaultPlan:
    """Return the faults of a seed."""
    rng = Random(f"{options.protocol}/{options.validators}/{seed}")
    byzantine = options.byzantine
    if byzantine is None:
        byzantine = rng.randint(0, tolerated_faults(options.validators))
    return draw_conditions(rng, options.validators, byzantine, options.storm_s)


def run_seed(seed: int, options: SeedOptions, trace: Trace | None = None) -> SeedOutcome:
    """Run one seed to its end, or to the first broken rule."""
    if options.protocol == CLIQUE:
        outcome = run_clique_seed(seed, options.validators, options.byzantine, options.storm_s, trace)
        return SeedOutcome(seed, outcome.blocks, outcome.steps, outcome.violations, 0, outcome.healing_s)
    conditions = conditions_of(seed, options)
    rules = RULES[options.protocol]
    network = NetworkSettings(rules, options.validators, options.timing, passes_over=options.passes_over)
    world = SimulatedNetwork(network, seed, conditions.misconduct, conditions.faulty, trace)
    world.checker.forgetful = conditions.forgetful
    if trace is not None:
        _describe(trace, conditions)
    _prepare(world, conditions, options.storm_s)
    world.start()
    world.run(options.storm_s)
    healing_s = messages_per_block = 0.0
    if not world.checker.violations:
        healing_s, messages_per_block = _heal(world, options)
    checker = world.checker
    return SeedOutcome(
        seed,
        len(checker.finals),
        world.event_queue.steps,
        tuple(checker.violations),
        max(checker.decided_rounds, default=0),
        healing_s,
        messages_per_block,
    )


def _describe(trace: Trace, conditions: FaultPlan) -> None:
    """Write Byzantine nodes and faults to the start of the trace."""
    for member, kinds in sorted(conditions.misconduct.items()):
        trace.add_note(0.0, f"V{member} misbehaves: {', '.join(kind.value for kind in kinds)}")
    for outage in conditions.outages:
        if not outage.keeps_disk:
            trace.add_note(0.0, f"V{outage.member} will lose its disk")
    link = conditions.link
    trace.add_note(
        0.0,
        f"messages take up to {link.max_delay_s:g} s, {link.loss:.0%} are lost, {link.duplication:.0%} doubled"
        + "".join(f", {share:.0%} more of {kind.__name__} lost" for kind, share in conditions.extra_loss.items()),
    )


def _prepare(world: SimulatedNetwork, conditions: FaultPlan, storm_s: float) -> None:
    world.delivery.link = conditions.link
    world.delivery.gossips = conditions.gossips
    # with faults, a connection may lose messages, unlike on real nodes. So members rely on reported connections, and
    # skip relaying to connected members, only in runs without faults.
    world.delivery.reports_links = not storm_s
    world.driver.slow_work_s = conditions.slow_work_s
    world.delivery.extra_loss = conditions.extra_loss
    for partition in conditions.partitions:
        world.at(partition.start_s, lambda groups=partition.groups: world.divide(groups))  # type: ignore[misc]
        world.at(partition.end_s, world.reunite)
    for at, first, second in conditions.flaps:
        pair = world.members[first], world.members[second]
        world.at(at, lambda pair=pair: world.connection_events.flap(*pair))  # type: ignore[misc]
    for outage in conditions.outages:
        world.at(outage.start_s, lambda index=outage.member: world.begin_outage(index))  # type: ignore[misc]
        world.at(
            outage.end_s + 1.0,
            lambda index=outage.member, keeps=outage.keeps_disk: world.restart(index, keeps),  # type: ignore[misc]
        )


def _heal(world: SimulatedNetwork, options: SeedOptions) -> tuple[float, float]:
    """End the faults and wait for blocks. Returns the time until the first block (infinite if blocks stop), and the
    number of messages for a later block.
    """
    world.delivery.link = CALM
    world.delivery.extra_loss = {}
    world.driver.slow_work_s = min(world.driver.slow_work_s, 0.05)
    if world.trace is not None:
        world.trace.add_note(world.now, "the faults end")
    # wait for the end of messages, outages and restarts that began in the fault phase
    world.run(world.now + 2.0)
    for member in world.members:
        world.restart(member.index)
    world.reunite()
    healed_at = world.now
    goal = max(member.height for member in world.honest) + 1
    first = _wait_for(world, goal, options.growth_limit_s)
    if first is None:
        return math.inf, 0.0
    per_block, sent = options.growth_limit_s, world.delivery.count
    if _wait_for(world, goal + BLOCKS_AFTER_HEALING - 1, BLOCKS_AFTER_HEALING * per_block) is None:
        return math.inf, 0.0
    return first - healed_at, (world.delivery.count - sent) / (BLOCKS_AFTER_HEALING - 1)


def _wait_for(world: SimulatedNetwork, height: int, limit_s: float) -> float | None:
    """Wait until all honest nodes have reached a height, and return the time. On timeout, record a violation and return
    None.
    """
    everyone: Callable[[], bool] = lambda: all(member.height >= height for member in world.honest)  # noqa: E731
    if world.run(world.now + limit_s, everyone):
        return world.now
    if not world.checker.violations:
        heights = " ".join(f"{member.name}:{member.height}" for member in world.honest)
        world.checker.stalled(world.now, f"height {height} not reached within {limit_s:g} s ({heights})")
    return None


def run_many(first_seed: int, count: int, options: SeedOptions, processes: int = 1) -> Iterator[SeedOutcome]:
    """Run a range of seeds. Yields outcomes in order, for any number of processes."""
    seeds = range(first_seed, first_seed + count)
    if processes <= 1 or count <= _SEEDS_PER_TASK:
        for seed in seeds:
            yield run_seed(seed, options)
        return
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield from pool.map(_Task(options), seeds, chunksize=_SEEDS_PER_TASK)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class _Task(Struct, frozen=True):
    """A seed runner that can be pickled."""

    options: SeedOptions

    def __call__(self, seed: int) -> SeedOutcome:
        return run_seed(seed, self.options)
