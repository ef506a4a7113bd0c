"""Tests networks of real processes that move to QBFT at a block: from Clique, from IBFT 2.0, and with other
validators.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.network import TestNetwork
from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.integration.command import ophion

FIRST = 8
PERIOD_S = 1
only_long = pytest.mark.skipif(os.environ.get("OPHION_FAULTS") != "long", reason="needs OPHION_FAULTS=long")
_QBFT: dict[str, Any] = {"blockperiodseconds": PERIOD_S, "epochlength": 30000, "requesttimeoutseconds": 2}


def _migrate(network: TestNetwork, validators: list[str] | None = None) -> None:
    """Rewrite the genesis file, so that QBFT starts at block `FIRST`."""
    genesis = json.loads(network.genesis_file.read_text())
    genesis["config"]["qbft"] = {**_QBFT, "startBlock": FIRST}
    if validators is not None:
        genesis["config"]["transitions"] = {"qbft": [{"block": FIRST, "validators": validators}]}
    network.genesis_file.write_text(json.dumps(genesis))


@contextmanager
def _running(network: TestNetwork) -> Iterator[TestNetwork]:
    """Start all nodes at once, so that each has run for some blocks before the migration."""
    try:
        with ThreadPoolExecutor(len(network.nodes)) as pool:
            list(pool.map(NodeProcess.start, network.nodes))
        yield network
    finally:
        network.close()


def _times(node: NodeProcess, numbers: range) -> list[int]:
    return [int(node.rpc("eth_getBlockByNumber", hex(number), False)["timestamp"], 16) for number in numbers]


@only_long
def test_clique_becomes_qbft_with_the_same_members(tmp_path: Path) -> None:
    network = TestNetwork(tmp_path, "clique", validators=4, followers=1)
    _migrate(network)
    with _running(network):
        nodes = network.nodes
        # send one transaction before the migration and one transaction after it
        first = nodes[1].send(legacy_transaction(DEV_KEYS[0], 0, gas_price=0, chain_id=1337))
        nodes[0].receipt(first)
        network.wait(lambda: min(network.heights()) >= FIRST + 1, 60, "the first QBFT blocks")
        second = nodes[2].send(legacy_transaction(DEV_KEYS[0], 1, gas_price=0, chain_id=1337))
        assert int(nodes[3].receipt(second)["blockNumber"], 16) >= FIRST
        network.grow(3, 60)
        assert network.agrees()
        before, after = (nodes[4].rpc("eth_getBlockByNumber", hex(number), False) for number in (FIRST - 1, FIRST))
        assert len(before["extraData"]) == 2 + 2 * 97
        assert after["difficulty"] == "0x1"
        assert after["mixHash"] != before["mixHash"]
        members = sorted("0x" + key.address.hex() for key in network.keys[:4])
        assert nodes[4].rpc("clique_getSigners", hex(FIRST - 2)) == members
        assert nodes[4].rpc("qbft_getValidatorsByBlockNumber", hex(FIRST)) == members
        assert nodes[4].rpc("qbft_getValidatorsByBlockNumber", hex(FIRST - 1)) == members
        assert nodes[4].rpc("eth_getBlockByNumber", "finalized", False) is not None
        times = _times(nodes[0], range(FIRST - 1, FIRST + 1))
        print(f"seconds between the last Clique and the first QBFT block: {times[1] - times[0]}")
        # after a restart and on a node without data, every block verifies from genesis under the new genesis file
        network.kill(0, 4)
        network.wipe(4)
        nodes[0].start()
        nodes[4].start()
        network.grow(2, 60)
        assert network.agrees()
        assert all("Traceback" not in node.output() for node in nodes)


def test_a_signer_with_the_old_genesis_file_stops_before_the_block(tmp_path: Path) -> None:
    network = TestNetwork(tmp_path, "clique", validators=4, followers=1)
    old = tmp_path / "old.json"
    old.write_text(network.genesis_file.read_text())
    for index in (3, 4):
        node = network.nodes[index]
        node._arguments = [one.replace(str(network.genesis_file), str(old)) for one in node._arguments]
    _migrate(network)
    with _running(network):
        updated = (0, 1, 2)
        network.wait(lambda: min(network.heights(updated)) >= FIRST + 2, 90, "QBFT blocks")
        for index in (3, 4):
            network.wait(lambda index=index: not network.nodes[index].is_running, 60, "the stop")  # type: ignore[misc]
        assert f"new rules from block {FIRST}" in network.nodes[3].output()
        assert "announce new rules from block" in network.nodes[4].output()
        assert network.agrees(updated)
        # with the new genesis file, the stopped nodes continue with their data
        for index in (3, 4):
            node = network.nodes[index]
            node._arguments = [one.replace(str(old), str(network.genesis_file)) for one in node._arguments]
            node.start()
        network.grow(2, 60)
        assert network.agrees()


@only_long
def test_ibft2_becomes_qbft_with_other_validators_at_the_same_block(tmp_path: Path) -> None:
    network = TestNetwork(tmp_path, "ibft2", validators=4, followers=2)
    # the new validators are the last two validators and the two followers
    chosen = sorted("0x" + key.address.hex() for key in network.keys[2:])
    _migrate(network, chosen)
    with _running(network):
        network.wait(lambda: min(network.heights()) >= FIRST + 2, 90, "QBFT blocks")
        nodes = network.nodes
        assert nodes[0].rpc("qbft_getValidatorsByBlockNumber", hex(FIRST)) == chosen
        makers = {nodes[0].rpc("eth_getBlockByNumber", hex(FIRST + at), False)["miner"] for at in range(3)}
        assert makers <= set(chosen)
        network.kill(0)
        network.grow(2, 60, range(1, 6))
        assert network.agrees(range(1, 6))


def test_an_ibft2_node_with_the_old_genesis_file_stops(tmp_path: Path) -> None:
    network = TestNetwork(tmp_path, "ibft2", validators=4)
    old = tmp_path / "old.json"
    old.write_text(network.genesis_file.read_text())
    node = network.nodes[3]
    node._arguments = [one.replace(str(network.genesis_file), str(old)) for one in node._arguments]
    _migrate(network)
    with _running(network):
        network.wait(lambda: min(network.heights((0, 1, 2))) >= FIRST + 1, 90, "QBFT blocks")
        network.wait(lambda: not node.is_running, 60, "the stop")
        assert f"moved from ibft2 to QBFT at block {FIRST}" in node.output()


def test_a_running_clique_network_is_moved_by_the_plan(tmp_path: Path) -> None:
    """`ophion` makes the migration plan on a running network. Every node restarts with the new genesis file, one after
    the other.
    """
    network, new = TestNetwork(tmp_path, "clique", validators=4), tmp_path / "new.json"
    with _running(network):
        nodes = network.nodes
        network.wait(lambda: min(network.heights()) >= 2, 60, "the second block")

        def urls() -> str:
            return ",".join(f"http://127.0.0.1:{node.ports['json-rpc']}" for node in nodes)

        first = max(network.heights()) + 25
        plan = ("operator", "plan-migration", f"--rpc={urls()}")
        early = ophion(*plan, f"--genesis-file={network.genesis_file}", f"--to={new}", "--start-block=3")
        early.failed("--start-block 3 is too early")
        said = ophion(*plan, f"--genesis-file={network.genesis_file}", f"--to={new}", f"--start-block={first}")
        assert f"moves from clique to QBFT at block {first}" in said.succeeded().out
        check = ophion("operator", "plan-migration", f"--rpc={urls()}", f"--genesis-file={new}")
        assert "0 of 4 nodes have QBFT" in check.out
        assert check.code == 1
        network.genesis_file.write_text(new.read_text())
        for node in nodes:
            node.kill()
            node.start()
        doctor = ophion("doctor", f"--rpc={urls()}", "--wait=30").out
        assert f"A migration to QBFT at block {first} is under way" in doctor
        assert "4 of 4 nodes have the new genesis file" in doctor
        done = ophion("operator", "plan-migration", f"--rpc={urls()}", f"--genesis-file={new}").succeeded().out
        assert f"All 4 nodes have QBFT from block {first} on." in done
        network.wait(lambda: min(network.heights()) >= first + 2, 120, "QBFT blocks")
        assert network.agrees()
        times = _times(nodes[0], range(first - 1, first + 1))
        print(f"seconds between the last Clique and the first QBFT block: {times[1] - times[0]}")
        assert (
            f"The network has moved to QBFT at block {first}." in ophion("doctor", f"--rpc={urls()}", "--wait=30").out
        )
