"""How long a network stands still when the proposer of the next block dies.

The rest of the network is well. The moment of death is drawn from the whole height: before its block is due, while the
proposal is on its way, after it has been prepared.
"""

from __future__ import annotations

import math
from random import Random

from ophion.testing.simulation.conditions import Link
from ophion.testing.simulation.driver import Network
from ophion.testing.simulation.runs import RULES, SeedOptions
from ophion.testing.simulation.world import World

_SETTLING_S = 3.0


def recovery_s(seed: int, options: SeedOptions) -> float:
    """Seconds from the death of the proposer to the next block on every other chain."""
    rng = Random(f"recovery/{options.protocol}/{options.validators}/{seed}")
    world = World(Network(RULES[options.protocol], options.validators, options.timing), seed)
    world.mail.link = Link(0.001, rng.choice((0.005, 0.02, 0.1)))
    world.mail.gossips = False  # nothing is lost, so passing on would only cost time
    world.start()
    world.run(_SETTLING_S + rng.random() * options.timing.period_s * options.validators)
    machine = world.members[rng.randrange(options.validators)].machine
    assert machine is not None
    assert machine.committee is not None
    dying = machine.committee.proposer(0)
    victim = next(member for member in world.members if member.address == dying)
    world.crash(victim.index)
    died_at = world.now
    others = [member for member in world.members if member is not victim]
    goal = max(member.height for member in others) + 1
    if world.run(died_at + 100 * options.timing.request_timeout_s, lambda: all(m.height >= goal for m in others)):
        return world.now - died_at
    return math.inf
