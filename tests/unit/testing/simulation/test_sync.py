"""Nodes that are behind get blocks from others."""

from __future__ import annotations

from ophion.consensus.bft.qbft_messages import Qbft
from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.network import SimulatedNetwork


def behind() -> SimulatedNetwork:
    """Return a network of four nodes. Three nodes are five blocks ahead of the fourth node, which is disconnected."""
    world = SimulatedNetwork(NetworkSettings(Qbft(), 4), 1)
    world.start()
    world.divide((0, 0, 0, 1))
    world.run(9.0, lambda: world.members[0].height >= 5)
    assert world.members[3].height == 0
    return world


def test_a_member_that_learns_of_a_greater_height_fetches_the_blocks() -> None:
    world = behind()
    world.divide((0, 0, 0, 0))
    world.syncing.introduce(world.members[3], world.members[0])
    height = world.members[0].height
    assert world.run(world.now + 0.5, lambda: world.members[3].height >= height)


def test_a_member_without_sources_retries_until_one_is_online() -> None:
    world = behind()
    world.syncing.aim(world.members[3], 5)
    world.run(world.now + 3.0)
    assert world.members[3].height == 0
    world.divide((0, 0, 0, 0))
    assert world.run(world.now + 1.5, lambda: world.members[3].height >= 5)


def test_a_block_far_ahead_is_a_reason_to_fetch_and_the_next_one_is_taken() -> None:
    world = behind()
    member, chain = world.members[3], world.members[0].chain
    world.syncing.receive(member, chain[3])
    assert (member.height, member.target) == (0, 3)
    world.syncing.receive(member, chain[1])
    assert member.height == 1
