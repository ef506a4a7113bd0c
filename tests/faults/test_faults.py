"""Faults of real processes: validators that are killed, frozen, disconnected or lose their disk, and wrong clocks.

Nodes are connected through relays (`ophion.testing.relay`), so links can be cut while processes run. After each fault,
no two nodes have different blocks at one height, no acknowledged block is lost, and the chain grows within three
request timeouts after the end of the fault. All test runs include the short set; `make faults` runs the long set
(variable OPHION_FAULTS=long).
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from ophion.testing.network import TestNetwork

IS_LONG = os.environ.get("OPHION_FAULTS") == "long"
ENGINES = ["ibft2", "qbft"] if IS_LONG else ["qbft"]
TIMEOUT_S = 2
RECOVERY_S = 3 * TIMEOUT_S
"""Recovery time that the documentation states. Test machines are busy, so a test fails only after several times this
limit.
"""
PATIENCE = 1 if IS_LONG else 5

pytestmark = pytest.mark.parametrize("engine", ENGINES)
long_only = pytest.mark.skipif(not IS_LONG, reason="part of the long set: make faults")


class Ledger:
    """Every block that the test has seen on any node."""

    def __init__(self, network: TestNetwork) -> None:
        self._network = network
        self._hashes: dict[int, str] = {}

    def note(self, indexes: Iterable[int]) -> None:
        """Read the chains of these nodes. No earlier block may be missing or different."""
        for index in indexes:
            height = self._network.height(index)
            for number in range(max(1, height - 8), height + 1):
                block_hash = self._network.block_hash(index, number)
                assert block_hash is not None, f"node {index} has lost block {number}"
                assert self._hashes.setdefault(number, block_hash) == block_hash, f"a fork at block {number}"

    def check(self) -> None:
        """Wait until all nodes have all recorded blocks."""
        network, last = self._network, max(self._hashes)
        network.wait(lambda: min(network.heights()) >= last, RECOVERY_S * PATIENCE, f"block {last} everywhere")
        for index in range(len(self._network.nodes)):
            for number, block_hash in self._hashes.items():
                assert self._network.block_hash(index, number) == block_hash, f"node {index} has another block {number}"


def begun(network: TestNetwork) -> Ledger:
    """Wait until all nodes take part in consensus, including nodes that started after the first block."""
    network.wait(lambda: min(network.heights()) >= 2, 60, "the second block")
    method = "ibft_getStatus" if network.engine == "ibft2" else "qbft_getStatus"
    phases = lambda: [node.rpc(method)["phase"] for node in network.nodes]  # noqa: E731
    network.wait(lambda: "recovering from lost votes" not in phases(), 60, "everybody taking part")
    ledger = Ledger(network)
    ledger.note(range(4))
    return ledger


def recovered(network: TestNetwork, ledger: Ledger, indexes: Iterable[int] = range(4)) -> None:
    """Check that the chain grows in time, and that all nodes follow it."""
    chosen = list(indexes)
    network.grow(1, RECOVERY_S * PATIENCE, chosen)
    ledger.note(chosen)


def network_of(path: Path, engine: str, relayed: bool = True) -> TestNetwork:
    return TestNetwork(path, engine, 4, timeout_s=TIMEOUT_S, relayed=relayed)


def test_one_is_killed_and_the_rest_goes_on(tmp_path: Path, engine: str) -> None:
    with network_of(tmp_path, engine, relayed=False) as network:
        ledger = begun(network)
        for victim in range(4) if IS_LONG else (2,):
            rest = [index for index in range(4) if index != victim]
            network.kill(victim)
            recovered(network, ledger, rest)
            network.grow(5, 60, rest)
            network.nodes[victim].start()
            recovered(network, ledger)
        ledger.check()


def test_the_network_is_divided_and_heals(tmp_path: Path, engine: str) -> None:
    with network_of(tmp_path, engine) as network:
        ledger = begun(network)
        for _ in range(3 if IS_LONG else 1):
            network.divide((0, 1), (2, 3))
            time.sleep(30 if IS_LONG else 8)
            halted = network.heights()
            assert max(halted) - min(halted) <= 1, "neither half has a quorum"
            network.heal()
            recovered(network, ledger)
        ledger.check()


def test_a_validator_freezes(tmp_path: Path, engine: str) -> None:
    with network_of(tmp_path, engine, relayed=False) as network:
        ledger = begun(network)
        os.kill(network.nodes[1].pid, signal.SIGSTOP)
        rest = (0, 2, 3)
        recovered(network, ledger, rest)
        time.sleep(30 if IS_LONG else 4)
        ledger.note(rest)
        os.kill(network.nodes[1].pid, signal.SIGCONT)
        recovered(network, ledger)
        ledger.check()


def test_all_are_killed_at_once(tmp_path: Path, engine: str) -> None:
    with network_of(tmp_path, engine, relayed=False) as network:
        ledger = begun(network)
        chance = random.Random(14)
        for _ in range(50 if IS_LONG else 2):
            time.sleep(chance.random() * 2)
            ledger.note(range(4))
            network.kill(0, 1, 2, 3)
            order = list(range(4))
            chance.shuffle(order)
            for index in order:
                network.nodes[index].start()
            recovered(network, ledger)
        ledger.check()


def test_a_validator_loses_its_disk(tmp_path: Path, engine: str) -> None:
    with network_of(tmp_path, engine, relayed=False) as network:
        ledger = begun(network)
        network.kill(3)
        network.wipe(3)
        recovered(network, ledger, (0, 1, 2))
        network.nodes[3].start()
        recovered(network, ledger)
        network.grow(4, 60)
        ledger.check()


@long_only
def test_connections_are_cut_all_the_time(tmp_path: Path, engine: str) -> None:
    """Cut 30 % of all connections every second. Blocks continue, and the network recovers afterwards."""
    with network_of(tmp_path, engine) as network:
        ledger = begun(network)
        chance = random.Random(30)
        before = max(network.heights())
        for _ in range(60):
            for relay in network.relays.values():
                if chance.random() < 0.3:
                    relay.hang_up()
            time.sleep(1)
            ledger.note(range(4))
        assert max(network.heights()) > before + 10
        recovered(network, ledger)
        ledger.check()


@long_only
def test_a_clock_is_five_seconds_off(tmp_path: Path, engine: str) -> None:
    for seconds in (5, -5):
        path = tmp_path / str(seconds)
        path.mkdir()
        network = TestNetwork(path, engine, 4, timeout_s=TIMEOUT_S, clocks={1: seconds})
        with network:
            ledger = begun(network)
            network.grow(8, 60, (0, 2, 3))
            ledger.note((0, 2, 3))
            # a node with a slow clock refuses the newest blocks until its clock reaches their timestamps
            late = 2 + max(0, -seconds)
            network.wait(lambda: network.height(1) >= network.height(0) - late, 30, "the odd one keeping up")  # noqa: B023
            ledger.note(range(4))
