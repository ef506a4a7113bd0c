"""The simulated network runs machines in the same way as a node. tests/simulation has scenarios with whole networks."""

from __future__ import annotations

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.messages import Commit
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.network import SimulatedNetwork


def world(validators: int = 4, seed: int = 1) -> SimulatedNetwork:
    found = SimulatedNetwork(NetworkSettings(Ibft2(), validators), seed)
    found.start()
    return found


def test_the_same_seed_gives_the_same_run() -> None:
    runs = []
    for seed in (1, 1, 2):
        found = SimulatedNetwork(NetworkSettings(Qbft(), 4), seed)
        found.start()
        found.run(10.0)
        runs.append((found.event_queue.steps, [block.hash for block in found.members[0].chain], found.now))
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[2][0] or runs[0][1] == runs[2][1]


def test_members_that_are_down_receive_nothing_and_catch_up() -> None:
    found = world()
    found.crash(3)
    found.run(5.0)
    assert found.members[3].height == 0
    found.restart(3)
    assert found.run(found.now + 2.0, lambda: found.members[3].height == found.members[0].height > 0)


def test_a_restart_without_disk_begins_at_genesis() -> None:
    found = SimulatedNetwork(NetworkSettings(Ibft2(), 4), 1, faulty=(2,))
    found.start()
    found.run(5.0)
    found.crash(2)
    found.restart(2, keeps_disk=False)
    assert found.members[2].height == 0
    assert found.members[2].durable_votes is None
    assert found.run(found.now + 2.0, lambda: found.members[2].height > 3)
    assert found.checker.violations == []


def test_groups_cannot_communicate() -> None:
    found = world()
    found.divide((0, 0, 0, 1))
    found.run(8.0)
    assert found.members[3].height == 0
    assert found.members[0].height >= 4
    assert not found.delivery.are_connected(found.members[0], found.members[3])
    found.reunite()
    assert found.delivery.are_connected(found.members[0], found.members[3])


def test_a_member_that_dies_in_the_middle_carries_out_only_the_first_effects() -> None:
    found = world()
    found.at(1.0, lambda: found.begin_outage(0))
    found.run(3.0)
    assert found.members[0].machine is None


def test_a_filter_drops_what_it_likes() -> None:
    found = world()
    found.delivery.filter = lambda _sender, _receiver, payload: not isinstance(payload, Commit)
    found.run(20.0)
    assert found.heights() == [0] * 4


def test_time_passes_even_when_nothing_happens() -> None:
    found = SimulatedNetwork(NetworkSettings(Ibft2(), 4))
    assert not found.run(7.0)
    assert found.now == 7.0
