"""Tests the simulated Clique network. tests/simulation/test_clique_scenarios.py has scenarios with whole networks."""

from __future__ import annotations

from ophion.testing.simulation.clique import SimulatedCliqueNetwork
from ophion.testing.simulation.trace import Trace


def test_the_same_seed_gives_the_same_chain() -> None:
    heads = []
    for _ in range(2):
        world = SimulatedCliqueNetwork(4, 9, dishonest=(1,))
        world.start()
        world.run(20.0)
        heads.append(world.members[0].head.hash)
    assert heads[0] == heads[1]


def test_rules_that_break_end_the_run() -> None:
    world = SimulatedCliqueNetwork(3)
    world.start()
    world.at(2.5, lambda: world.report("a rule", "for the test"))
    assert not world.run(10.0)
    assert world.now == 2.5
    assert world.violations[0].rule == "a rule"


def test_a_trace_shows_who_seals() -> None:
    trace = Trace(3)
    world = SimulatedCliqueNetwork(3, trace=trace)
    world.start()
    world.run(3.5)
    text = trace.diagram()
    assert text.count("seals") == 3
    assert "in turn" in text


def test_a_block_from_the_future_waits() -> None:
    world = SimulatedCliqueNetwork(2)
    world.members[0].skew_s = 12.0
    world.start()
    world.run(1.0)
    assert world.members[1].head.number <= 1
    world.run(30.0)
    assert world.members[1].head.number > 3
