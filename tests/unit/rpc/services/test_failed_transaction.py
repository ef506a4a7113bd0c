"""Failed transactions: reported to hardhat-ethers as errors, to other clients by their receipts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.rpc.services.failed_transaction import HARDHAT_GAS, OLDER_HARDHAT_GAS
from ophion.testing.node_process import NodeProcess
from tests.clients.dev_scripts import FIRST, Node

QUIET = ("--rpc-ws-port=0", "--graphql-http-enabled=false", "--page-http-enabled=false", "--logging=WARN")
NO = bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + (2).to_bytes(32, "big") + b"no".ljust(32, b"\0")
# creation code that reverts with Error("no"): copies the bytes after it into memory
CODE = "0x" + (bytes((0x60, len(NO), 0x60, 12, 0x60, 0, 0x39, 0x60, len(NO), 0x60, 0, 0xFD)) + NO).hex()


@pytest.fixture(scope="module", params=["anvil", "hardhat"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, NodeProcess]]:
    path = tmp_path_factory.mktemp(request.param) / "data"
    with NodeProcess(path, *QUIET, f"--preset={request.param}", command=("dev",)) as started:
        yield request.param, started


def answer(node: NodeProcess, gas: int, data: str) -> dict[str, Any]:
    client = Node(f"http://127.0.0.1:{node.ports['json-rpc']}")
    found: dict[str, Any] = client.answer("eth_sendTransaction", {"from": FIRST, "data": data, "gas": hex(gas)})
    return found


def test_metadata_answers(node: tuple[str, NodeProcess]) -> None:
    assert len(node[1].rpc("hardhat_metadata")["instanceId"]) == 66


def test_a_failed_transaction_of_hardhat_ethers_is_an_error(node: tuple[str, NodeProcess]) -> None:
    error = answer(node[1], HARDHAT_GAS, CODE)["error"]
    assert error["message"] == ("Error: VM Exception while processing transaction: reverted with reason string 'no'")
    assert error["data"]["data"] == "0x" + NO.hex()
    assert node[1].rpc("eth_getTransactionReceipt", error["data"]["txHash"])["status"] == "0x0"


def test_a_halt_is_an_error_too(node: tuple[str, NodeProcess]) -> None:
    assert "processing transaction: " in answer(node[1], HARDHAT_GAS, "0xfe")["error"]["message"]
    assert "without a reason" in answer(node[1], HARDHAT_GAS, "0x60006000fd")["error"]["message"]


def test_a_client_that_sends_fast_gets_every_error(node: tuple[str, NodeProcess]) -> None:
    answers = [answer(node[1], HARDHAT_GAS, "0xfe") for _ in range(50)]
    assert [found for found in answers if "error" not in found] == []


def test_other_clients_read_the_receipt(node: tuple[str, NodeProcess]) -> None:
    name, process = node
    found = answer(process, 200_000, CODE)
    if name == "hardhat":
        assert "error" in found
    else:
        assert process.rpc("eth_getTransactionReceipt", found["result"])["status"] == "0x0"


def test_a_successful_transaction_returns_its_hash(node: tuple[str, NodeProcess]) -> None:
    assert len(answer(node[1], HARDHAT_GAS, "0x00")["result"]) == 66


def test_the_gas_limit_of_older_hardhat_counts_after_its_metadata(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *QUIET, "--preset=anvil", command=("dev",)) as process:
        hash = answer(process, OLDER_HARDHAT_GAS, CODE)["result"]
        assert process.rpc("eth_getTransactionReceipt", hash)["status"] == "0x0"
        process.rpc("hardhat_metadata")
        assert answer(process, OLDER_HARDHAT_GAS, CODE)["error"]["data"]["data"] == "0x" + NO.hex()
        assert "result" in answer(process, OLDER_HARDHAT_GAS - 1, CODE)
