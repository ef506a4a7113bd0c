"""Measures how long a network makes no blocks after its next proposer crashes, and at later heights of that proposer.

The rest of the network is healthy. The time of the crash within the height is random: before the block is due, during
the proposal, or after the block is prepared. It is also random whether closed connections are noticed.
"""

from __future__ import annotations

import math
from random import Random

from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.fault_plan import LinkQuality
from ophion.testing.simulation.network import SimulatedNetwork
from ophion.testing.simulation.seed_runs import RULES, SeedOptions
from ophion.testing.simulation.simulated_node import SimulatedMember

_SETTLING_S = 3.0


def recovery_s(seed: int, options: SeedOptions) -> float:
    """Return the seconds from the crash of the proposer to the next block on the chains of all other nodes."""
    world, _ = _with_dead_proposer(seed, options)
    died_at = world.now
    others = [member for member in world.members if member.machine is not None]
    goal = max(member.height for member in others) + 1
    if world.run(died_at + 100 * options.timing.request_timeout_s, lambda: all(m.height >= goal for m in others)):
        return world.now - died_at
    return math.inf


def later_turns_s(seed: int, options: SeedOptions, turns: int = 3) -> list[float]:
    """Return by how many seconds the block is late, for each later height whose first proposer is the crashed node."""
    world, victim = _with_dead_proposer(seed, options)
    witness = next(member for member in world.members if member.machine is not None)
    taken: list[float] = []
    count = 0
    while len(taken) < turns:
        machine, height = witness.machine, witness.height
        assert machine is not None
        assert machine.validator_set is not None
        is_its_turn = machine.validator_set.proposer(0) == victim.address
        before = world.now
        if not world.run(before + 100 * options.timing.request_timeout_s, lambda: witness.height > height):  # noqa: B023
            return [math.inf]
        # count only turns that ended with the block of another validator: if the proposer crashed after its proposal,
        # validators may still decide its block
        if is_its_turn and witness.head.builder != victim.address:
            count += 1
            if count > 1:
                taken.append(world.now - before - options.timing.period_s)
    return taken


def _with_dead_proposer(seed: int, options: SeedOptions) -> tuple[SimulatedNetwork, SimulatedMember]:
    """Return a network and its next proposer. The proposer has just crashed."""
    rng = Random(f"recovery/{options.protocol}/{options.validators}/{seed}")
    rules = RULES[options.protocol]
    world = SimulatedNetwork(
        NetworkSettings(rules, options.validators, options.timing, passes_over=options.passes_over), seed
    )
    world.delivery.link = LinkQuality(0.001, rng.choice((0.005, 0.02, 0.1)))
    world.delivery.gossips = False  # do not relay messages, because no message is lost and relaying takes time
    world.start()
    world.run(_SETTLING_S + rng.random() * options.timing.period_s * options.validators)
    machine = world.members[rng.randrange(options.validators)].machine
    assert machine is not None
    assert machine.validator_set is not None
    dying = machine.validator_set.proposer(0)
    victim = next(member for member in world.members if member.address == dying)
    world.crash(victim.index)
    return world, victim
