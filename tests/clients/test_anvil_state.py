"""Exchanges state dumps with Anvil: each node loads the other's dump and gives the other's answers.

`ANVIL` names Anvil's binary.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.dev_scripts import FIRST, OTHER, SECOND, Node
from tests.clients.test_anvil_differential import ANVIL, anvil, ophion

pytestmark = pytest.mark.skipif(ANVIL is None, reason="ANVIL does not name Anvil's binary")

TOKEN = (
    "0x6fffffffffffffffffffffffffffffffff3355"
    "604580601e6000396000f3"
    "602435803354033355600435805482019055600052"
    "7fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef60206000a1"
    "600160005260206000f3"
)


def use(node: Node) -> list[str]:
    """Make a block for each of several transactions. Returns their hashes."""

    def sent(**fields: Any) -> str:
        hash: str = node.ask("eth_sendTransaction", {"from": FIRST, "gas": "0x100000", **fields})
        node.mined(hash)
        return hash

    created = sent(data=TOKEN)
    token = node.mined(created)["contractAddress"]
    moved = sent(to=token, data="0xa9059cbb" + OTHER[2:].rjust(64, "0") + f"{1:064x}")
    access = [{"address": OTHER, "storageKeys": ["0x" + "01".zfill(64)]}]
    listed = sent(to=OTHER, value="0x2", gasPrice="0x77359400", accessList=access)
    legacy = sent(to=SECOND, value="0x2", gasPrice="0x77359400")
    failed = sent(to=token, data="0x", gas="0x5300")
    node.ask("anvil_mine", "0x2")
    return [created, moved, listed, legacy, failed]


def picked(fields: dict[str, Any] | None, names: str) -> list[Any]:
    assert fields is not None
    return [fields.get(name) for name in names.split()]


def view(node: Node, hashes: list[str]) -> dict[str, Any]:
    header = "hash parentHash stateRoot number timestamp gasUsed baseFeePerGas mixHash transactions"
    transaction = "hash from to value nonce input type blockHash transactionIndex r s accessList"
    receipt = "status gasUsed cumulativeGasUsed contractAddress from to blockNumber type effectiveGasPrice"
    logs = node.ask("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"})
    return {
        "blocks": [picked(node.block(hex(number)), header) for number in range(node.number() + 1)],
        "transactions": [picked(node.ask("eth_getTransactionByHash", hash), transaction) for hash in hashes],
        "receipts": [picked(node.receipt(hash), receipt) for hash in hashes],
        "logs": [picked(log, "address topics data blockHash transactionHash logIndex") for log in logs],
        "balances": [node.balance(one) for one in (FIRST, SECOND, OTHER)],
    }


def test_a_dump_of_anvil_is_restored(tmp_path: Path) -> None:
    with anvil() as node:
        hashes = use(node)
        expected, dump = view(node, hashes), node.ask("anvil_dumpState")
        earlier = [node.ask("eth_getBalance", FIRST, hex(number)) for number in range(1, 6)]
        with_history = node.ask("anvil_dumpState", True)
    with ophion(tmp_path / "data") as node:
        assert node.ask("anvil_loadState", dump) is True
        assert view(node, hashes) == expected
        assert node.mined(node.send(FIRST, OTHER))["status"] == "0x1"
    with ophion(tmp_path / "other") as node:
        assert node.ask("anvil_loadState", with_history) is True
        assert [node.ask("eth_getBalance", FIRST, hex(number)) for number in range(1, 6)] == earlier


def test_anvil_restores_a_dump(tmp_path: Path) -> None:
    with ophion(tmp_path / "data") as node:
        hashes = use(node)
        expected, dump = view(node, hashes), node.ask("anvil_dumpState")
    with anvil() as node:
        assert node.ask("anvil_loadState", dump) is True
        assert view(node, hashes) == expected
        assert node.mined(node.send(FIRST, OTHER))["status"] == "0x1"


def test_a_transaction_of_an_impersonated_account_is_restored_with_its_sender(tmp_path: Path) -> None:
    with anvil() as node:
        node.ask("anvil_impersonateAccount", OTHER)
        node.ask("anvil_setBalance", OTHER, hex(10**20))
        node.mined(node.send(OTHER, SECOND))
        dump = node.ask("anvil_dumpState")
    with ophion(tmp_path / "data") as node:
        node.ask("anvil_loadState", dump)
        sent = node.ask("eth_getBlockByNumber", "0x1", True)["transactions"][0]
        assert (sent["from"], sent["to"]) == (OTHER, SECOND)
        dump = node.ask("anvil_dumpState")
    with anvil() as node:
        assert node.ask("anvil_loadState", dump) is True
        assert node.ask("eth_getBlockByNumber", "0x1", True)["transactions"][0]["from"] == OTHER
