"""Tests three Clique signers as real processes: turns, a transaction, a kill, and a partition that heals."""

from __future__ import annotations

import time
from pathlib import Path

from ophion.testing.network import TestNetwork
from ophion.testing.signing import DEV_KEYS, legacy_transaction


def test_signers_take_turns_and_come_together_again(tmp_path: Path) -> None:
    with TestNetwork(tmp_path, "clique", validators=3, relayed=True) as network:
        nodes = network.nodes
        network.wait(lambda: min(network.heights()) >= 3, 60, "the third block")
        sent = nodes[1].send(legacy_transaction(DEV_KEYS[0], 0, gas_price=0, chain_id=1337))
        number = int(nodes[1].receipt(sent)["blockNumber"], 16)
        network.wait(lambda: min(network.heights()) >= number + 2, 60)
        assert all(node.receipt(sent) for node in nodes)
        # signer 2 alone can make at most one block, while the other two signers continue
        network.divide((0, 1), (2,))
        stranded = nodes[2].send(legacy_transaction(DEV_KEYS[1], 0, gas_price=0, chain_id=1337))
        network.grow(6, 60, (0, 1))
        assert network.height(2) < network.height(0)
        network.heal()
        network.wait(lambda: network.height(2) >= network.height(0) - 1, 60, "the third one catching up")
        # the transaction of the abandoned branch is mined again on the canonical branch
        network.wait(lambda: nodes[0].rpc("eth_getTransactionReceipt", stranded) is not None, 60, "its transaction")
        network.kill(1)
        network.grow(3, 60, (0, 2))
        nodes[1].start()
        network.wait(lambda: network.height(1) >= network.height(0) - 1, 60, "the killed one catching up")
        time.sleep(1)
        settled = min(network.heights()) - 3
        assert len({network.block_hash(index, settled) for index in range(3)}) == 1
        assert all("Traceback" not in node.output() for node in nodes)
