"""Answers of a node with the preset `hardhat`. The texts are those of Hardhat's node 2.29.1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ophion.testing.node_process import NodeProcess
from tests.clients.dev_scripts import FIRST, OTHER, Node

QUIET = ("--rpc-ws-port=0", "--graphql-http-enabled=false", "--page-http-enabled=false", "--logging=WARN")
STRANGER = "0x" + "09" * 20
GWEI = 10**9


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    path = tmp_path_factory.mktemp("hardhat") / "data"
    with NodeProcess(path, *QUIET, "--preset=hardhat", command=("dev",)) as started:
        yield Node(f"http://127.0.0.1:{started.ports['json-rpc']}")


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("hardhat_setBalance", [OTHER, "0x1"]),
        ("hardhat_setCode", [STRANGER, "0x00"]),
        ("hardhat_setNonce", [STRANGER, "0x1"]),
        ("hardhat_setCoinbase", [STRANGER]),
        ("hardhat_setNextBlockBaseFeePerGas", [hex(GWEI)]),
        ("hardhat_setLoggingEnabled", [True]),
        ("hardhat_mine", ["0x2"]),
        ("hardhat_reset", []),
        ("evm_setAutomine", [True]),
        ("evm_setIntervalMining", [0]),
    ],
)
def test_a_cheat_code_answers_true(node: Node, name: str, params: list[Any]) -> None:
    assert node.ask(name, *params) is True


def test_other_results_stay(node: Node) -> None:
    assert node.ask("evm_mine") == "0"
    assert node.ask("eth_getTransactionReceipt", "0x" + "11" * 32) is None
    assert node.ask("hardhat_getAutomine") is True


def refused(node: Node, name: str, *params: Any) -> dict[str, Any]:
    found = node.answer(name, *params)
    assert "error" in found, found
    error: dict[str, Any] = found["error"]
    return error


def sent(**fields: Any) -> dict[str, Any]:
    return {"from": FIRST, "to": OTHER, **fields}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"gasPrice": "0x2", "maxFeePerGas": "0x2"}, "Cannot send both gasPrice and maxFeePerGas params"),
        ({"gasPrice": "0x2", "maxPriorityFeePerGas": "0x2"}, "Cannot send both gasPrice and maxPriorityFeePerGas"),
        (
            {"maxFeePerGas": "0x2", "maxPriorityFeePerGas": "0x3"},
            "maxPriorityFeePerGas (3) is bigger than maxFeePerGas (2)",
        ),
        ({"to": None}, "Contract creation without any data provided"),
        ({"from": STRANGER}, f"Unknown account {STRANGER}"),
        ({"gas": hex(2**25)}, f"Transaction gas limit is {2**25} and exceeds block gas limit of 30000000"),
        ({"gas": "0x1"}, "Transaction requires at least 21000 gas but got 1"),
        ({"chainId": "0x1"}, "Invalid chainId 1 provided, expected 31337 instead."),
    ],
)
def test_a_refused_transaction_has_the_text_of_hardhats_node(node: Node, fields: dict[str, Any], text: str) -> None:
    error = refused(node, "eth_sendTransaction", sent(**fields))
    assert error["message"] == text
    assert error["data"] == {"message": text, "data": None}


def test_fees_nonces_and_balances_are_named(node: Node) -> None:
    node.ask("hardhat_reset")
    base_fee = int(node.ask("eth_getBlockByNumber", "pending", False)["baseFeePerGas"], 16)
    error = refused(node, "eth_sendTransaction", sent(maxFeePerGas="0x2", maxPriorityFeePerGas="0x1"))
    text = f"Transaction maxFeePerGas (2) is too low for the next block, which has a baseFeePerGas of {base_fee}"
    assert error["message"] == text
    node.ask("eth_sendTransaction", sent())
    error = refused(node, "eth_sendTransaction", sent(nonce="0x0"))
    assert error["message"] == (
        "Nonce too low. Expected nonce to be 1 but got 0. Note that transactions can't be queued when automining."
    )
    value, price, gas = 10**24, 5 * GWEI, 21_000
    error = refused(node, "eth_sendTransaction", sent(value=hex(value), gasPrice=hex(price), gas=hex(gas)))
    balance = node.balance(FIRST)
    assert error["message"] == (
        f"Sender doesn't have enough funds to send tx. The max upfront cost is: {value + gas * price} "
        f"and the sender's balance is: {balance}."
    )


@pytest.mark.parametrize("fields", [{"value": hex(10**18)}, {"gasPrice": hex(GWEI)}, {"maxFeePerGas": "0x1"}])
@pytest.mark.parametrize("gas", [{}, {"gas": hex(100_000)}])
def test_a_call_may_cost_more_than_the_balance(node: Node, fields: dict[str, str], gas: dict[str, str]) -> None:
    call = {"from": STRANGER, "to": OTHER, **fields, **gas}
    assert node.ask("eth_call", call) == node.ask("eth_call", call, "0x0") == "0x"
    assert node.ask("eth_estimateGas", call) == node.ask("eth_estimateGas", call, "latest") == hex(21_000)


def test_a_raw_transaction_is_named_too(node: Node) -> None:
    node.ask("hardhat_reset")
    raw = node.ask("eth_signTransaction", sent(nonce="0x0", gas=hex(21_000)))
    node.ask("eth_sendTransaction", sent())
    error = refused(node, "eth_sendRawTransaction", raw["raw"] if isinstance(raw, dict) else raw)
    assert error["message"].startswith("Nonce too low. Expected nonce to be 1 but got 0.")


def test_a_failing_transaction_is_mined_and_is_an_error(node: Node) -> None:
    node.ask("hardhat_reset")
    error = refused(node, "eth_sendTransaction", {"data": "0x60006000fd"})
    assert error["message"] == "Error: Transaction reverted without a reason string"
    assert node.ask("eth_getTransactionReceipt", error["data"]["txHash"])["status"] == "0x0"


def test_a_failing_raw_transaction_is_an_error(node: Node) -> None:
    node.ask("hardhat_reset")
    found = node.ask("eth_signTransaction", {"from": FIRST, "data": "0x60006000fd", "gas": hex(100_000)})
    error = refused(node, "eth_sendRawTransaction", found["raw"] if isinstance(found, dict) else found)
    assert error["message"] == "Error: Transaction reverted without a reason string"
    assert node.ask("eth_getTransactionReceipt", error["data"]["txHash"])["status"] == "0x0"


def test_a_failing_call_is_an_error_of_hardhats_node(node: Node) -> None:
    for name in ("eth_call", "eth_estimateGas"):
        error = refused(node, name, {"from": FIRST, "data": "0x60006000fd"})
        assert (error["code"], error["data"]) == (3, "0x")
        assert error["message"] == "Transaction reverted without a reason string"


def test_a_call_with_two_kinds_of_fees_is_refused(node: Node) -> None:
    error = refused(node, "eth_estimateGas", sent(gasPrice=hex(10 * GWEI), maxPriorityFeePerGas=hex(10 * GWEI)))
    assert error["message"] == "Cannot send both gasPrice and maxPriorityFeePerGas"


def test_a_mined_transaction_cannot_be_dropped(node: Node) -> None:
    hash = node.ask("eth_sendTransaction", sent())
    error = refused(node, "hardhat_dropTransaction", hash)
    assert (error["code"], error["message"]) == (
        -32602,
        f"Transaction {hash} cannot be dropped because it's already mined",
    )
    assert node.ask("hardhat_dropTransaction", "0x" + "11" * 32) is False


def test_a_call_may_offer_any_price(node: Node) -> None:
    assert node.ask("eth_call", sent(gasPrice="0x1")) == "0x"


def test_a_time_before_the_head_is_named(node: Node) -> None:
    node.ask("hardhat_reset")
    node.ask("evm_mine")
    last = int(node.ask("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    error = refused(node, "evm_setNextBlockTimestamp", last - 1)
    text = f"Timestamp {last - 1} is lower than the previous block's timestamp {last}"
    assert (error["code"], error["message"]) == (-32000, text)
    assert refused(node, "evm_mine", last - 1)["message"] == text
    assert refused(node, "evm_setNextBlockTimestamp", last)["message"] == (
        f"Timestamp {last} is equal to the previous block's timestamp. "
        "Enable the 'allowBlocksWithSameTimestamp' option to allow this"
    )


def test_a_nonce_cannot_go_back(node: Node) -> None:
    node.ask("hardhat_setNonce", OTHER, "0x5")
    error = refused(node, "hardhat_setNonce", OTHER, "0x4")
    assert (error["code"], error["message"]) == (
        -32000,
        "New nonce (4) must not be smaller than the existing nonce (5)",
    )
