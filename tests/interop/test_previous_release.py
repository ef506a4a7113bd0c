"""The previous release beside the current release: a mixed network, upgrades node by node, and downgrades.

Needs OPHION_PREVIOUS=path/to/its/ophion/program.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import COMMAND
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.integration.command import ophion

PREVIOUS = os.environ.get("OPHION_PREVIOUS", "")
LIMIT_S = 120.0

pytestmark = pytest.mark.skipif(
    not shutil.which(PREVIOUS), reason="OPHION_PREVIOUS does not name the program of the previous release"
)


def _program() -> tuple[str, ...]:
    """Return the command of the previous release, which must not import the current sources."""
    return ("env", "-u", "PYTHONPATH", PREVIOUS)


def _rounds(network: TestNetwork, first: int, last: int) -> int:
    """Return how many of these blocks needed a later round."""
    from ophion.consensus.bft.qbft_messages import Qbft

    blocks = (network.nodes[0].rpc("eth_getBlockByNumber", hex(number), False) for number in range(first, last + 1))
    return sum(Qbft().decode_extra(bytes.fromhex(block["extraData"][2:])).round > 0 for block in blocks)


def test_a_network_is_upgraded_node_by_node_and_one_node_goes_back(tmp_path: Path) -> None:
    launchers = dict.fromkeys(range(5), _program())
    names = ["v0", "v1", "v2", "v3", "f0"]
    plan = tmp_path / "plan.json"
    with TestNetwork(tmp_path, "qbft", validators=4, followers=1, timeout_s=4, launchers=launchers) as network:

        def check(step: int) -> None:
            nodes = [
                {
                    "name": name,
                    "rpc": f"http://127.0.0.1:{node.ports['json-rpc']}",
                    "role": "validator" if name.startswith("v") else "follower",
                }
                for name, node in zip(names, network.nodes, strict=True)
            ]
            plan.write_text(json.dumps({"nodes": nodes}))
            ophion("operator", "rolling-upgrade", f"--plan={plan}", f"--check={step}").succeeded()

        network.grow(3, LIMIT_S)
        hash = network.nodes[4].send(legacy_transaction(DEV_KEYS[0], 0, chain_id=CHAIN_ID, gas_price=1))
        before = network.nodes[4].receipt(hash)
        check(0)
        first = network.height(0)
        for step, index in enumerate((4, 0, 1, 2, 3), 1):
            network.nodes[index].stop()
            network.replace_program(index, COMMAND)
            network.nodes[index].start()
            network.wait(lambda: network.height(index) >= max(network.heights()) - 1, LIMIT_S, "the head")  # noqa: B023
            check(step)
            assert network.agrees()
            if step == 3:
                print("two releases in one network:", {node.rpc("web3_clientVersion") for node in network.nodes})
        assert network.nodes[4].receipt(hash) == before
        last = network.height(0)
        print(f"upgraded in blocks {first} to {last}, {_rounds(network, first, last)} of a later round")
        # the way back: the previous release continues with the database, or refuses it with what to do
        network.nodes[3].stop()
        network.replace_program(3, _program())
        try:
            network.nodes[3].start()
        except AssertionError as refusal:
            assert "Traceback" not in str(refusal)
            print("the previous release refuses the database:", str(refusal)[-300:])
        else:
            network.grow(4, LIMIT_S)
            assert network.agrees()
            print("the previous release continues with the database")
