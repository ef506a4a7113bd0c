"""Tests chain id, prices, sync status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chainspec.genesis import parse_genesis
from ophion.node.config import NodeConfig
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.endpoints.services import method_table
from ophion.rpc.schema.registry import HTTP
from ophion.rpc.services.context import SyncStatus
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface, open_interface


def test_simple_facts(dev: Interface) -> None:
    assert dev.ask("eth_chainId") == "0x7e2"
    assert dev.ask("eth_protocolVersion") == "0x44"
    assert dev.ask("eth_accounts") == []
    assert dev.ask("eth_syncing") is False
    assert dev.ask("eth_blockNumber") == "0x0"
    dev.run(dev.node.seal())
    assert dev.ask("eth_blockNumber") == "0x1"


def test_a_genesis_without_chain_id_has_none(tmp_path: Path) -> None:
    genesis = parse_genesis(b'{"config":{"ethash":{}},"difficulty":"0x10","gasLimit":"0x1000000"}')
    with open_interface(tmp_path, genesis, NodeConfig()) as node:
        assert node.ask("eth_chainId") is None


def test_everything_can_be_asked_about_since_genesis(sample: Interface) -> None:
    found = sample.ask("eth_capabilities")
    head = sample.ask("eth_getBlockByNumber", "latest")
    assert found.pop("head") == {"number": "0x20", "hash": head["hash"]}
    assert set(found) == {"state", "tx", "logs", "receipts", "blocks", "stateproofs"}
    assert all(one == {"disabled": False, "oldestBlock": "0x0"} for one in found.values())


def test_states_that_are_dropped_are_not_promised(dev: Interface) -> None:
    dev.context.queries.chain.state_history = 2
    for head, oldest in ((1, "0x0"), (2, "0x0"), (3, "0x1")):
        dev.run(dev.node.seal())
        found = dev.ask("eth_capabilities")
        assert found["head"]["number"] == hex(head)
        for part in ("state", "stateproofs"):
            assert found[part] == {"disabled": False, "oldestBlock": oldest}
        for part in ("tx", "logs", "receipts", "blocks"):
            assert found[part] == {"disabled": False, "oldestBlock": "0x0"}


def test_a_node_that_is_behind_says_how_far(dev: Interface) -> None:
    context = replace(dev.context, sync_status=lambda: SyncStatus(1, 16, 300))
    behind = Dispatcher(method_table(context, ("eth",), HTTP), dev.loop)
    answer = dev.message(b'{"id":1,"method":"eth_syncing"}', behind)
    assert answer["result"] == {"startingBlock": "0x1", "currentBlock": "0x10", "highestBlock": "0x12c"}


def test_the_gas_price_is_the_median_of_recent_blocks_and_not_below_the_floor(dev: Interface) -> None:
    assert dev.ask("eth_gasPrice") == "0x3e8"
    raws = [legacy_transaction(DEV_KEYS[1], nonce, gas_price=price) for nonce, price in enumerate((5000, 6000, 7000))]
    dev.run(dev.node.mine(*raws))
    assert dev.ask("eth_gasPrice") == hex(6000)
    dev.ask("miner_setMinGasPrice", "0x1f40")
    assert dev.ask("eth_gasPrice") == "0x1f40"


@pytest.mark.parametrize("count", [0, -1, "0x0", "x", None])
def test_a_fee_history_of_no_blocks_is_refused(sample: Interface, count: Any) -> None:
    assert sample.error("eth_feeHistory", count, "latest")[0] == -32602


@pytest.mark.parametrize("percentiles", [[101], [-1], [True], ["x"], list(range(101)), 5, [0, 100, 4]])
def test_percentiles_lie_between_0_and_100_and_do_not_fall(sample: Interface, percentiles: Any) -> None:
    assert sample.error("eth_feeHistory", 1, "latest", percentiles)[0] == -32602


def test_a_fee_history_of_too_many_blocks_shows_the_newest(sample: Interface) -> None:
    most = sample.ask("eth_feeHistory", 1024, "latest")
    assert sample.ask("eth_feeHistory", 1025, "latest") == most
    assert sample.ask("eth_feeHistory", hex(2**62), "latest") == most


def test_a_fee_history_reaches_back_to_genesis_at_most(sample: Interface) -> None:
    history = sample.ask("eth_feeHistory", 1024, "0x2", [0, 100])
    assert history["oldestBlock"] == "0x0"
    assert len(history["gasUsedRatio"]) == len(history["reward"]) == 3
    assert len(history["baseFeePerGas"]) == len(history["baseFeePerBlobGas"]) == 4
    assert history["reward"][0] == ["0x0", "0x0"]
    assert len(sample.ask("eth_feeHistory", 1, "latest", [0.0, 4.0, 4.0, 100.0])["reward"][0]) == 4
    assert "reward" not in sample.ask("eth_feeHistory", "0x1", "pending")
    assert sample.error("eth_feeHistory", 1, "0x99")[0] == -32602


def test_fees_of_later_forks_are_no_methods_before_them(sample: Interface) -> None:
    assert sample.error("eth_baseFee") == (-32601, "Method not found")
    assert sample.error("eth_blobBaseFee") == (-32601, "Method not found")
    assert sample.ask("eth_maxPriorityFeePerGas") == "0x3e8"
