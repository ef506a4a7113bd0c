"""Tests the simulated network that the fixture `network` provides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ophion.sdk.errors import ArgumentError
from ophion.testing.validator_network import NetworkStalled, ValidatorNetwork


def test_the_same_seed_gives_the_same_run() -> None:
    def history(seed: int) -> tuple[list[int], list[int], float, str]:
        net = ValidatorNetwork(seed=seed)
        net.set_links(max_delay_s=0.5, loss=0.05)
        net.run(30)
        return net.heights, net.rounds(), net.now, net.diagram(None)

    assert history(1) == history(1)
    assert history(1)[3] != history(2)[3]


@pytest.mark.parametrize("protocol", ["qbft", "ibft2"])
def test_a_network_survives_one_stopped_validator_and_not_two(protocol: str) -> None:
    net = ValidatorNetwork(validators=4, seed=1, protocol=protocol)
    net.run(blocks=3)
    net.stop(0)
    net.run(blocks=4)
    assert net.heights[0] < min(net.heights[1:])
    net.stop(1)
    with pytest.raises(NetworkStalled, match="heights are"):
        net.run(blocks=3, timeout_s=120)
    net.start(0, 1)
    net.run(blocks=3)
    assert len(set(net.heights)) == 1


def test_the_larger_part_of_a_divided_network_goes_on() -> None:
    net = ValidatorNetwork(validators=4, seed=3)
    net.run(blocks=2)
    net.partition([0, 1, 2], [3])
    net.run(blocks=5)
    assert net.heights[3] < net.heights[0]
    net.heal()
    net.run(blocks=1)
    assert len(set(net.heights)) == 1


def test_validators_are_voted_in_and_out() -> None:
    net = ValidatorNetwork(validators=4, seed=4, standby=1)
    net.run(blocks=2)
    assert net.validators == [0, 1, 2, 3]
    net.vote([0, 1, 2], 4)
    net.run(blocks=8)
    assert net.validators == [0, 1, 2, 3, 4]
    net.run(blocks=6)
    assert 4 in net.proposers()
    net.vote([0, 1, 2, 4], 3, is_added=False)
    net.run(blocks=10)
    assert net.validators == [0, 1, 2, 4]


def test_faults_can_be_scheduled() -> None:
    net = ValidatorNetwork(seed=5)
    net.at(10, lambda: net.stop(2))
    net.at(20, lambda: net.start(2, keeps_disk=False))
    net.set_clock(1, 0.3)
    net.run(60)
    assert min(net.heights) > 30
    assert "V2 stops" in net.diagram(None)


def test_wrong_arguments_are_named() -> None:
    wrong: list[dict[str, Any]] = [
        {"protocol": "raft"},
        {"protocol": []},
        {"validators": 0},
        {"standby": -1},
        {"seed": "1"},
        {"block_period_s": "1"},
        {"request_timeout_s": -1},
    ]
    for one in wrong:
        with pytest.raises(ArgumentError, match=next(iter(one))):
            ValidatorNetwork(**one)
    net = ValidatorNetwork()
    uses: list[Callable[[], object]] = [
        lambda: net.stop(4),
        lambda: net.start(-1),
        lambda: net.partition([0], [9]),
        lambda: net.vote([0], 77),
        lambda: net.set_clock(5, 0.1),
        lambda: net.rounds(9),
    ]
    for use in uses:
        with pytest.raises(ArgumentError, match="node: .* from 0 to 3"):
            use()
    with pytest.raises(ArgumentError, match="blocks"):
        net.run(blocks=-1)
    with pytest.raises(ArgumentError, match="seconds"):
        net.run("x")  # type: ignore[arg-type]  # wrong on purpose
