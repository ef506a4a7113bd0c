"""The driver runs machines in the same way as a node."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.network import SimulatedNetwork

both = pytest.mark.parametrize("rules", [Ibft2(), Qbft()], ids=["ibft2", "qbft"])


@both
def test_votes_are_stored_before_the_member_dies_of_the_next_effect(rules: ProtocolRules) -> None:
    """A node dies after any number of effects.

    The checker verifies that stored votes cover all messages that the node had sent.
    """
    for effects in range(5):
        world = SimulatedNetwork(NetworkSettings(rules, 4), effects)
        world.start()
        world.at(0.9, lambda world=world, effects=effects: setattr(world.members[0], "dies_after", effects))  # type: ignore[misc]
        world.run(8.0)
        assert world.members[0].machine is None
        world.restart(0)
        assert world.run(world.now + 20.0, lambda world=world: min(world.heights()) >= 6)  # type: ignore[misc]
        assert world.checker.violations == []


@both
def test_slow_work_delays_blocks_and_breaks_nothing(rules: ProtocolRules) -> None:
    world = SimulatedNetwork(NetworkSettings(rules, 4), 3)
    world.driver.slow_work_s = 0.4
    world.start()
    world.run(20.0)
    assert 5 < min(world.heights()) < 20
    assert world.checker.violations == []


@both
def test_a_block_that_does_not_fit_is_not_put_on_the_chain(rules: ProtocolRules) -> None:
    world = SimulatedNetwork(NetworkSettings(rules, 4), 3)
    world.start()
    world.run(5.0)
    block = world.members[0].chain[1]
    assert not world.driver.extend(world.members[0], block)
    assert world.members[0].height >= 3
