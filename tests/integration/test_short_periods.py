"""Tests networks of real nodes with block periods below a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.signing import DEV_KEYS, legacy_transaction


@pytest.mark.parametrize("engine", ["ibft2", "qbft"])
def test_four_validators_agree_on_blocks_of_200_milliseconds(tmp_path: Path, engine: str) -> None:
    options = {"blockperiodmilliseconds": 200}
    with TestNetwork(tmp_path, engine, bft_options=options) as network:
        network.grow(10, 60)
        raw = legacy_transaction(DEV_KEYS[0], 0, gas_price=0, chain_id=CHAIN_ID)
        receipt = network.nodes[2].receipt(network.nodes[0].send(raw))
        assert receipt["status"] == "0x1"
        network.grow(2, 60)
        assert network.agrees()
        blocks = [network.nodes[1].rpc("eth_getBlockByNumber", hex(number), False) for number in range(1, 11)]
        timestamps = [int(block["timestamp"], 16) for block in blocks]
        assert timestamps == sorted(timestamps)


def test_idle_qbft_validators_make_a_block_when_a_transaction_comes(tmp_path: Path) -> None:
    """The empty block period is far longer than the round timeout. Validators still make a block when a transaction
    arrives.
    """
    options = {"blockperiodmilliseconds": 200, "emptyblockperiodseconds": 3600}
    with TestNetwork(tmp_path, "qbft", timeout_s=1, bft_options=options) as network:
        # block 1 comes at once, because the timestamp of genesis is old
        network.wait(lambda: min(network.heights()) >= 1, 60, "the first block")
        for nonce in range(3):
            raw = legacy_transaction(DEV_KEYS[0], nonce, gas_price=0, chain_id=CHAIN_ID)
            assert network.nodes[nonce].receipt(network.nodes[nonce].send(raw))["status"] == "0x1"
        network.wait(lambda: min(network.heights()) >= 2, 60, "the blocks on every node")
        assert network.agrees()
