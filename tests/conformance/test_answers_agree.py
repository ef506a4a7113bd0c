"""Blocks, transactions, receipts and logs are the same in the answers of all methods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ophion.native.crypto import keccak256
from ophion.node.config import NodeConfig
from tests.conftest import DATA, shared_path
from tests.unit.rpc.interface import Interface, import_chain, open_interface

CHAINS = {"original": (DATA / "original-chain", "test.blocks"), "standard": (None, "chain.rlp")}


@pytest.fixture(scope="module", params=list(CHAINS))
def interface(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interface]:
    folder, blocks = CHAINS[request.param]
    folder = folder or shared_path("fixtures", "rpc-standard")
    path: Path = tmp_path_factory.mktemp("chain")
    genesis = import_chain(path, folder / "genesis.json", folder / blocks)
    with open_interface(path, genesis, NodeConfig()) as opened:
        yield opened


def numbers(interface: Interface) -> Iterator[str]:
    return map(hex, range(int(interface.ask("eth_blockNumber"), 16) + 1))


def hash_of(raw: str) -> str:
    return "0x" + keccak256(bytes.fromhex(raw[2:])).hex()


def test_blocks(interface: Interface) -> None:
    total = 0
    for number in numbers(interface):
        block = interface.ask("eth_getBlockByNumber", number, True)
        assert interface.ask("eth_getBlockByHash", block["hash"], True) == block
        short = interface.ask("eth_getBlockByNumber", number)
        assert short == {**block, "transactions": [one["hash"] for one in block["transactions"]]}
        assert interface.ask("eth_getBlockTransactionCountByNumber", number) == hex(len(block["transactions"]))
        assert interface.ask("eth_getBlockTransactionCountByHash", block["hash"]) == hex(len(block["transactions"]))
        assert interface.ask("eth_getUncleCountByBlockNumber", number) == hex(len(block["uncles"]))
        for position, uncle in enumerate(block["uncles"]):
            found = interface.ask("eth_getUncleByBlockHashAndIndex", block["hash"], hex(position))
            assert found["hash"] == uncle
            assert interface.ask("eth_getUncleByBlockNumberAndIndex", number, hex(position)) == found
        raw = interface.ask("debug_getRawBlock", number)
        assert interface.ask("debug_getRawBlock", block["hash"]) == raw
        assert int(block["size"], 16) == len(raw) // 2 - 1
        assert hash_of(interface.ask("debug_getRawHeader", number)) == block["hash"]
        total += int(block["difficulty"], 16)
        assert block.get("totalDifficulty", hex(total)) == hex(total)


def test_transactions_and_receipts(interface: Interface) -> None:
    for number in numbers(interface):
        block = interface.ask("eth_getBlockByNumber", number, True)
        receipts = interface.ask("eth_getBlockReceipts", number)
        assert interface.ask("eth_getBlockReceipts", {"blockHash": block["hash"]}) == receipts
        used = 0
        for position, (transaction, receipt) in enumerate(zip(block["transactions"], receipts, strict=True)):
            identity, place = transaction["hash"], hex(position)
            assert interface.ask("eth_getTransactionByHash", identity) == transaction
            assert interface.ask("eth_getTransactionByBlockNumberAndIndex", number, place) == transaction
            assert interface.ask("eth_getTransactionByBlockHashAndIndex", block["hash"], place) == transaction
            sender = transaction["from"], transaction["nonce"]
            assert interface.ask("eth_getTransactionBySenderAndNonce", *sender) == transaction
            assert hash_of(interface.ask("debug_getRawTransaction", identity)) == identity
            assert interface.ask("eth_getTransactionReceipt", identity) == receipt
            used += int(receipt["gasUsed"], 16)
            assert receipt["cumulativeGasUsed"] == hex(used)
            assert receipt["effectiveGasPrice"] == transaction["gasPrice"] == hex(price(transaction, block))
            assert (receipt["contractAddress"] is None) is (transaction["to"] is not None)
            assert ("blobGasUsed" in receipt) is (transaction["type"] == "0x3")
        assert block["gasUsed"] == hex(used)


def price(transaction: dict[str, Any], block: dict[str, Any]) -> int:
    """Return the effective gas price of a transaction."""
    if "maxFeePerGas" not in transaction:
        return int(transaction["gasPrice"], 16)
    tip = int(block["baseFeePerGas"], 16) + int(transaction["maxPriorityFeePerGas"], 16)
    return min(int(transaction["maxFeePerGas"], 16), tip)


def test_logs(interface: Interface) -> None:
    every = []
    for number in numbers(interface):
        block = interface.ask("eth_getBlockByNumber", number)
        logs = interface.ask("eth_getLogs", {"blockHash": block["hash"]})
        assert interface.ask("eth_getLogs", {"fromBlock": number, "toBlock": number}) == logs
        assert [log for receipt in interface.ask("eth_getBlockReceipts", number) for log in receipt["logs"]] == logs
        assert [log["logIndex"] for log in logs] == [hex(position) for position in range(len(logs))]
        assert all(log["blockTimestamp"] == block["timestamp"] for log in logs)
        every += logs
    assert interface.ask("eth_getLogs", {"fromBlock": "earliest", "toBlock": "latest"}) == every
    assert every


def test_fee_history(interface: Interface) -> None:
    count = int(interface.ask("eth_blockNumber"), 16) + 1
    history = interface.ask("eth_feeHistory", count, "latest", [0, 25, 50, 100])
    for position, number in enumerate(numbers(interface)):
        block = interface.ask("eth_getBlockByNumber", number)
        assert history["baseFeePerGas"][position] == block.get("baseFeePerGas", "0x0")
        used, limit = int(block["gasUsed"], 16), int(block["gasLimit"], 16)
        assert history["gasUsedRatio"][position] == used / limit
        base = int(block.get("baseFeePerGas", "0x0"), 16)
        tips = sorted(
            (int(receipt["effectiveGasPrice"], 16) - base, int(receipt["gasUsed"], 16))
            for receipt in interface.ask("eth_getBlockReceipts", number)
        )
        rewards = [int(reward, 16) for reward in history["reward"][position]]
        assert rewards == [at_percentile(tips, used * percent // 100) for percent in (0, 25, 50, 100)]


CONTRACT, RICH = "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f", "0xa94f5374fce5edbc8e2a8697c15331677e6ebf0b"
ADDRESSES = [CONTRACT, RICH, RICH[2:], RICH.upper().replace("0X", "0x"), RICH.upper(), "0x1", "0x", "", "0xzz", 5, None]
NUMBERS = [
    None,
    "0x0",
    "0x1",
    "0x01",
    "1",
    "010",
    1,
    -1,
    "0x",
    "",
    "0X1",
    hex(2**64),
    hex(2**256 - 1),
    hex(2**256),
    1.5,
]
BYTES = [None, "0x", "0x12a7b914", "12a7b914", "0x0", "", "0xzz", "0X12", 5, "0x" + "00" * 100]
MEMBERS = {
    "from": ADDRESSES, "to": ADDRESSES, "gas": [*NUMBERS, "0x5208", "30000", "0x100000"], "gasPrice": NUMBERS,
    "maxFeePerGas": NUMBERS, "maxPriorityFeePerGas": NUMBERS, "value": NUMBERS, "data": BYTES, "input": BYTES,
    "nonce": NUMBERS, "type": ["0x0", "0x2", "x"], "chainId": ["0x1", "x"], "strict": [True, False, "false", 0],
    "accessList": [None, [], [{"address": CONTRACT, "storageKeys": ["0x0"]}], {}, [5]], "other": [1],
}  # fmt: skip
CALLS = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in MEMBERS.items()})


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(call=CALLS)
def test_a_call_means_the_same_by_every_name_of_the_block(interface: Interface, call: dict[str, Any]) -> None:
    """A plain call at the newest block takes the fast path, and other spellings of that block take the slow path. The
    results agree.
    """
    number = interface.ask("eth_blockNumber")
    ways: list[list[Any]] = [["latest"], [number], [{"blockNumber": number}], [], ["latest", {}], ["latest", None, {}]]
    answers = [interface.request("eth_call", call, *way) for way in ways]
    assert all(short_of_detail(answer) == short_of_detail(answers[0]) for answer in answers), (call, answers)
    assert answers[0].get("error", {}).get("code") != -32603, call


@pytest.mark.parametrize("address", [*ADDRESSES, "0x" + "00" * 21, RICH + " "], ids=repr)
def test_an_account_is_the_same_by_every_name_of_the_block(interface: Interface, address: object) -> None:
    number = interface.ask("eth_blockNumber")
    block = interface.ask("eth_getBlockByNumber", number)["hash"]
    for name in ("eth_getBalance", "eth_getTransactionCount", "eth_getCode"):
        answers = [interface.request(name, address, *way) for way in (["latest"], [], [number], [block])]
        assert all(short_of_detail(answer) == short_of_detail(answers[0]) for answer in answers), name


def short_of_detail(answer: dict[str, Any]) -> Any:
    """Return an answer without the part of the error text that names the wrong parameter."""
    error = answer.get("error")
    return answer["result"] if error is None else (error["code"], error["data"] if error["code"] == 3 else None)


def at_percentile(tips: list[tuple[int, int]], threshold: int) -> int:
    """Return the tip of the transaction at which the cumulative gas, counted from the lowest tip, reaches the
    threshold.
    """
    reached = 0
    for tip, gas in tips:
        reached += gas
        if reached >= threshold:
            return tip
    return 0
