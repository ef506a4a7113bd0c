"""State dumps of `ophion dev`: blocks, transactions and receipts are the same in the node that loads the dump."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from tests.clients.dev_scripts import FIRST, OTHER, SECOND, Node
from tests.integration.test_dev_node import dev

TOKEN = (
    "0x6fffffffffffffffffffffffffffffffff3355"
    "604580601e6000396000f3"
    "602435803354033355600435805482019055600052"
    "7fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef60206000a1"
    "600160005260206000f3"
)
"""A token: the creator has 2^128 - 1, each call moves an amount and emits a log."""


def sent(node: Node, **fields: Any) -> str:
    hash: str = node.ask("eth_sendTransaction", {"from": FIRST, "gas": "0x100000", **fields})
    return hash


def use(node: Node) -> list[str]:
    """Make blocks with transactions of several kinds. Returns their hashes."""
    created = sent(node, data=TOKEN)
    token = node.ask("eth_getTransactionReceipt", created)["contractAddress"]
    moved = sent(node, to=token, data="0xa9059cbb" + OTHER[2:].rjust(64, "0") + f"{1:064x}")
    failed = node.answer("eth_sendTransaction", {"from": FIRST, "to": token, "data": "0x", "gas": "0x5300"})["result"]
    access = [{"address": OTHER, "storageKeys": ["0x" + "01".zfill(64)]}]
    listed = sent(node, to=OTHER, value="0x2", gasPrice="0x77359400", accessList=access)
    legacy = sent(node, to=OTHER, value="0x2", gasPrice="0x77359400")
    node.ask("anvil_setBalance", OTHER, hex(10**20))
    node.ask("anvil_mine", "0x2")
    return [created, moved, failed, listed, legacy]


def view(node: Node, hashes: list[str]) -> dict[str, Any]:
    """Return what the node answers about its blocks and transactions."""
    height = int(node.ask("eth_blockNumber"), 16)
    return {
        "blocks": [node.ask("eth_getBlockByNumber", hex(number), True) for number in range(height + 1)],
        "by hash": [node.ask("eth_getTransactionByHash", hash) for hash in hashes],
        "receipts": [node.ask("eth_getTransactionReceipt", hash) for hash in hashes],
        "logs": node.ask("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"}),
        "balances": [node.ask("eth_getBalance", one, "latest") for one in (FIRST, SECOND, OTHER)],
        "nonces": [node.ask("eth_getTransactionCount", one, "latest") for one in (FIRST, SECOND, OTHER)],
    }


def test_a_loaded_dump_restores_blocks_transactions_and_receipts(tmp_path: Path) -> None:
    with dev(tmp_path / "one", "--preset=anvil") as (node, _):
        hashes = use(node)
        expected, dump = view(node, hashes), node.ask("anvil_dumpState")
    with dev(tmp_path / "two", "--preset=anvil") as (node, _):
        lost = sent(node, to=OTHER, value="0x5")
        node.ask("anvil_mine", "0x20")
        saved, before = node.ask("evm_snapshot"), view(node, [lost])
        assert node.ask("anvil_loadState", dump) is True
        assert view(node, hashes) == expected
        assert node.ask("eth_getTransactionReceipt", lost) is None
        receipt = node.ask("eth_getTransactionReceipt", sent(node, to=OTHER, value="0x1"))
        assert (receipt["status"], int(receipt["blockNumber"], 16)) == ("0x1", len(expected["blocks"]))
        parent = node.ask("eth_getBlockByNumber", receipt["blockNumber"], False)["parentHash"]
        assert parent == expected["blocks"][-1]["hash"]
        assert node.ask("evm_revert", saved) is True
        assert view(node, [lost]) == before
        assert node.ask("anvil_loadState", dump) is True
        assert view(node, hashes) == expected
        node.ask("anvil_reset")
        assert node.ask("eth_getBlockByNumber", "latest", False) == before["blocks"][0] | {"transactions": []}
        assert node.ask("eth_getTransactionByHash", hashes[0]) is None


def test_a_transaction_of_an_impersonated_account_is_restored_with_its_sender(tmp_path: Path) -> None:
    with dev(tmp_path / "one", "--preset=anvil") as (node, _):
        node.ask("anvil_impersonateAccount", OTHER)
        node.ask("anvil_setBalance", OTHER, hex(10**20))
        hashes = [sent(node, **{"from": OTHER}, to=SECOND, value="0x1")]
        expected, dump = view(node, hashes), node.ask("anvil_dumpState")
    with dev(tmp_path / "two", "--preset=anvil") as (node, _):
        node.ask("anvil_loadState", dump)
        assert view(node, hashes) == expected


def test_a_restored_chain_is_there_after_a_restart(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with dev(tmp_path / "one", "--preset=anvil", f"--state={state}") as (node, process):
        hashes = use(node)
        expected = view(node, hashes)
        process.stop()
    with dev(tmp_path / "two", "--preset=anvil", f"--state={state}") as (node, process):
        assert view(node, hashes) == expected
        process.stop()
    given = ("--preset=anvil", "--timestamp=1700000000")
    with dev(tmp_path / "three", *given, f"--load-state={state}") as (node, process):
        assert view(node, hashes) == expected
        process.stop()
    with dev(tmp_path / "three", *given) as (node, process):
        assert view(node, hashes) == expected
        assert node.ask("eth_getTransactionReceipt", sent(node, to=OTHER, value="0x1"))["status"] == "0x1"


def test_earlier_states_of_a_dump_are_restored(tmp_path: Path) -> None:
    with dev(tmp_path / "one", "--preset=anvil") as (node, _):
        use(node)
        document = json.loads(gzip.decompress(bytes.fromhex(node.ask("anvil_dumpState")[2:])))
        second = document["blocks"][2]["header"]["number"]
        hash = node.ask("eth_getBlockByNumber", second, False)["hash"]
    account = {"nonce": 7, "balance": "0x99", "code": {"LegacyAnalyzed": {"bytecode": "0x600100", "original_len": 2}}}
    document["historical_states"] = [[hash, {"accounts": {OTHER: account}, "storage": {OTHER: {"0x5": "0x6"}}}]]
    with dev(tmp_path / "two", "--preset=anvil") as (node, _):
        node.ask("anvil_loadState", "0x" + json.dumps(document).encode().hex())
        assert node.ask("eth_getBalance", OTHER, second) == "0x99"
        assert node.ask("eth_getCode", OTHER, second) == "0x6001"
        assert int(node.ask("eth_getStorageAt", OTHER, "0x5", second), 16) == 6
        assert int(node.ask("eth_getBalance", OTHER, "latest"), 16) > 0x99


def test_blocks_that_cannot_be_read_leave_the_accounts(tmp_path: Path) -> None:
    account = {"nonce": 0, "balance": "0x77", "code": "0x", "storage": {}}
    wrong: list[Any] = [{"header": {}}, 5, {"header": {"number": "0x1"}, "transactions": 7}]
    with dev(tmp_path / "one", "--preset=anvil") as (node, process):
        for number, block in enumerate(wrong):
            account["balance"] = hex(0x77 + number)
            document = {"accounts": {OTHER: account}, "blocks": [block], "best_block_number": 2, "transactions": []}
            node.ask("anvil_loadState", "0x" + json.dumps(document).encode().hex())
            assert (node.balance(OTHER), node.number()) == (0x77 + number, 2)
        assert "blocks of the state cannot be read" in process.output()
        assert "Traceback" not in process.output()


def test_a_revert_after_a_rollback_restores_all_blocks_of_its_branch(tmp_path: Path) -> None:
    with dev(tmp_path / "one", "--preset=anvil") as (node, _):
        hashes = use(node)
        expected, saved = view(node, hashes), node.ask("evm_snapshot")
        node.ask("anvil_rollback", 5)
        node.ask("anvil_mine", "0x3")
        node.ask("evm_revert", saved)
        assert view(node, hashes) == expected
