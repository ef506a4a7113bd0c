"""Real validators never sign contradictory messages across kills, and never sign below the height of their peers."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from ophion.testing.network import TestNetwork
from tests.faults.recording_validator import Signed, contradictions, recorded, recording_command

ENGINES = ["ibft2", "qbft", "clique"]
KILLS = 6


def recording_network(path: Path, engine: str, timeout_s: int = 1) -> TestNetwork:
    launchers = {index: recording_command(path / f"signed{index}") for index in range(4)}
    return TestNetwork(path, engine, 4, timeout_s=timeout_s, launchers=launchers)


def test_contradictions_are_found() -> None:
    votes = [Signed("Prepare", 1, 0, "aa"), Signed("Prepare", 1, 0, "bb"), Signed("Commit", 1, 0, "aa")]
    assert contradictions(votes) == ["two of Prepare 1/0"]
    assert contradictions([Signed("RoundChange", 1, 2, ""), Signed("Commit", 1, 1, "aa")]) != []
    assert contradictions([Signed("seal", 3, 0, "aa"), Signed("seal", 3, 0, "bb")]) == ["two of seal 3/0"]


@pytest.mark.parametrize("engine", ENGINES)
def test_killed_validators_sign_nothing_that_contradicts_them(tmp_path: Path, engine: str) -> None:
    with recording_network(tmp_path, engine) as network:
        network.wait(lambda: min(network.heights()) >= 1, 60, "the first block")
        chance = random.Random(9)
        for _ in range(KILLS):
            time.sleep(chance.random())
            # kill one or two validators; two killed validators leave no quorum, which causes round changes
            victims = chance.sample(range(4), chance.choice((1, 2)))
            network.kill(*victims)
            for victim in victims:
                network.nodes[victim].start()
        network.grow(3, 60)
        kinds = set()
        for index in range(4):
            signed = recorded(tmp_path / f"signed{index}")
            kinds |= {one.kind for one in signed}
            assert contradictions(signed) == [], f"node {index}"
        assert kinds >= ({"seal"} if engine == "clique" else {"Proposal", "Prepare", "Commit"})


@pytest.mark.parametrize("engine", ENGINES)
def test_a_validator_with_an_empty_disk_signs_nothing_below_its_network(tmp_path: Path, engine: str) -> None:
    # erase the database of the signer of block 1
    wiped = 1 if engine == "clique" else 0
    rest, file = [index for index in range(4) if index != wiped], tmp_path / f"signed{wiped}"
    # a validator waits at most one timeout for the blocks that its peers announce, and a busy machine may need a second
    with recording_network(tmp_path, engine, timeout_s=4) as network:
        network.wait(lambda: min(network.heights()) >= 4, 60, "the fourth block")
        network.kill(wiped)
        network.wipe(wiped)
        head, before = max(network.heights(rest)), len(recorded(file))
        network.nodes[wiped].start()
        network.wait(lambda: len(recorded(file)) > before, 60, "a signature of the wiped one")
        assert min(one.height for one in recorded(file)[before:]) >= head
