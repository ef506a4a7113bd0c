"""Tests four validators and a follower as real processes: blocks, transactions, votes, and a killed validator."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.testing.network import TestNetwork
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.integration.command import ophion

PREFIX = {"ibft2": "ibft", "qbft": "qbft"}


@pytest.mark.parametrize("engine", ["ibft2", "qbft"])
def test_a_network_takes_turns_carries_transactions_and_does_without_one(tmp_path: Path, engine: str) -> None:
    with TestNetwork(tmp_path, engine, validators=4, followers=1) as network:
        nodes = network.nodes
        network.wait(lambda: min(network.heights()) >= 2, 60, "the second block")
        # send a transaction to the follower: a validator mines it, and all nodes have its receipt
        sent = nodes[4].send(legacy_transaction(DEV_KEYS[0], 0, gas_price=0, chain_id=1337))
        number = nodes[4].receipt(sent)["blockNumber"]
        network.wait(lambda: min(network.heights()) >= int(number, 16), 60)
        assert all(node.receipt(sent)["blockNumber"] == number for node in nodes)
        validators = {"0x" + key.address.hex() for key in network.keys[:4]}

        def builders() -> set[str]:
            """Return the validators that have made a block. A validator that starts late misses its first turn."""
            return {nodes[0].rpc("eth_getBlockByNumber", hex(n), False)["miner"] for n in range(2, network.height(0))}

        network.wait(lambda: builders() == validators, 60, "a block of every validator")
        asked = ",".join(f"http://127.0.0.1:{node.ports['json-rpc']}" for node in nodes)
        assert "The network is producing blocks." in ophion("doctor", f"--rpc={asked}", "--wait=20").succeeded().out
        # one validator is killed and restarted
        network.kill(1)
        rest = (0, 2, 3, 4)
        network.grow(5, 60, rest)
        (gone,) = [
            member
            for member in nodes[0].rpc(f"{PREFIX[engine]}_getStatus")["members"]
            if member["address"] == "0x" + network.keys[1].address.hex()
        ]
        assert (gone["isConnected"], gone["isPassedOver"], gone["client"]) == (False, True, None)
        assert "offline and skipped" in ophion("doctor", f"--rpc={asked}", "--wait=20").succeeded().out
        nodes[1].start()
        network.wait(lambda: network.height(1) >= network.height(0) - 1, 60, "the killed one catching up")
        network.grow(4, 60)
        # the follower becomes a validator by majority vote
        newcomer = "0x" + network.keys[4].address.hex()
        for index in range(4):
            assert nodes[index].rpc(f"{PREFIX[engine]}_proposeValidatorVote", newcomer, True)
        method = f"{PREFIX[engine]}_getValidatorsByBlockNumber"
        network.wait(lambda: newcomer in nodes[4].rpc(method, "latest"), 60, "the vote")
        made = f"{PREFIX[engine]}_getSignerMetrics"

        def has_proposed() -> bool:
            counts = {one["address"]: int(one["proposedBlockCount"], 16) for one in nodes[0].rpc(made)}
            return counts.get(newcomer, 0) > 0

        network.wait(has_proposed, 60, "a block of the newcomer")
        assert network.agrees()
        assert all("Traceback" not in node.output() for node in nodes)
