"""Runs one seed of a Clique network: a fault phase, recovery, then a check that one chain grows on all signers."""

from __future__ import annotations

from random import Random

from msgspec import Struct

from ophion.primitives.types import Hash32
from ophion.testing.simulation.clique import DELAY_UNIT_S, SimulatedCliqueNetwork
from ophion.testing.simulation.fault_plan import CALM, FaultPlan, draw_conditions
from ophion.testing.simulation.invariants import Violation
from ophion.testing.simulation.trace import Trace


class CliqueOutcome(Struct, frozen=True):
    """Result of the run of one seed."""

    blocks: int
    steps: int
    violations: tuple[Violation, ...]
    healing_s: float


def spare_signers(signers: int) -> int:
    """Return how many signers may fail: a chain needs floor(n/2)+1 signers to grow (consensus.md 1.5)."""
    return signers - (signers // 2 + 1)


def run_clique_seed(
    seed: int, signers: int, byzantine: int | None, storm_s: float, trace: Trace | None = None
) -> CliqueOutcome:
    """Run one seed to its end, or to the first broken rule."""
    rng = Random(f"clique/{signers}/{seed}")
    dishonest = rng.randint(0, spare_signers(signers)) if byzantine is None else byzantine
    conditions = draw_conditions(rng, signers, dishonest, storm_s)
    world = SimulatedCliqueNetwork(signers, seed, dishonest=conditions.misconduct, trace=trace)
    _prepare(world, conditions)
    world.start()
    world.run(storm_s)
    healing_s = 0.0 if world.violations else _heal(world)
    blocks = max(member.head.number for member in world.honest)
    return CliqueOutcome(blocks, world.steps, tuple(world.violations), healing_s)


def _prepare(world: SimulatedCliqueNetwork, conditions: FaultPlan) -> None:
    """Schedule the faults. All consensus data of Clique is on its chain, so no outage loses the disk."""
    world.link = conditions.link
    for partition in conditions.partitions:
        world.at(partition.start_s, lambda groups=partition.groups: world.divide(groups))  # type: ignore[misc]
        world.at(partition.end_s, world.reunite)
    for outage in conditions.outages:
        world.at(outage.start_s, lambda index=outage.member: world.crash(index))  # type: ignore[misc]
        world.at(outage.end_s, lambda index=outage.member: world.restart(index))  # type: ignore[misc]


def _heal(world: SimulatedCliqueNetwork) -> float:
    """End the faults; return the time until all honest signers have the same newer chain."""
    world.link = CALM
    world.run(world.now + 5.0)
    for member in world.members:
        world.restart(member.index)
    world.reunite()
    healed_at = world.now
    count = len(world.members)
    depth = count
    start = max(member.head.number for member in world.honest)
    # the slowest block is an out-of-turn block with the maximum random delay
    per_block_s = world.period_s + (count // 2 + 1) * DELAY_UNIT_S + 10 * CALM.max_delay_s
    limit_s = (2 * depth + count) * per_block_s
    grown = world.run(
        world.now + limit_s, lambda: all(member.head.number >= start + 2 * depth for member in world.honest)
    )
    if not world.violations:
        if not grown:
            heads = " ".join(f"{member.name}:{member.head.number}" for member in world.honest)
            world.report("height grows after healing", f"no {2 * depth} blocks within {limit_s:g} s ({heads})")
        elif len(_agreed(world, start + depth)) != 1:
            world.report("heads converge after healing", f"different blocks {depth} below the head")
    return world.now - healed_at


def _agreed(world: SimulatedCliqueNetwork, number: int) -> set[Hash32]:
    return {world.chain(member)[number].hash for member in world.honest}
