"""`ophion dev --fork-url` continues the chain of another node."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.node_process import NodeProcess
from tests.clients.dev_scripts import FIRST, OTHER, SECOND, Node
from tests.integration.test_dev_node import QUIET, dev, refusal

COUNTER = "0x602a60005560128060106000396000f36000546001018060005560005260206000f3"
"""Code that stores 42 in slot 0. Each call adds one and returns the sum."""

SENT = {
    "from": FIRST,
    "to": "0x00000000000000000000000000000000000000e2",
    "value": "0x1",
    "gas": "0x5208",
    "nonce": "0x1",
    "maxFeePerGas": "0x12a05f200",
    "maxPriorityFeePerGas": "0x1",
}


class Proxy(ThreadingHTTPServer):
    """Counts requests and calls on their way to a node."""

    target: int
    requests = 0
    calls = 0
    is_away = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Forwarding(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        proxy = self.server
        proxy.requests += 1
        asked = json.loads(body)
        proxy.calls += len(asked) if isinstance(asked, list) else 1
        if proxy.is_away:
            self.close_connection = True
            return
        connection = http.client.HTTPConnection("127.0.0.1", proxy.target, timeout=60)
        connection.request("POST", "/", body, {"Content-Type": "application/json"})
        text = connection.getresponse().read()
        connection.close()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Proxy]]:
    with dev(tmp_path_factory.mktemp("source"), "--preset=anvil") as (node, process):
        node.ask("eth_sendTransaction", {"from": FIRST, "data": COUNTER, "gas": "0x100000"})
        node.ask("anvil_setBalance", OTHER, "0x64")
        node.ask("anvil_mine", "0x5")
        proxy = Proxy(("127.0.0.1", 0), Forwarding)
        proxy.target = process.ports["json-rpc"]
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield node, proxy
        proxy.shutdown()
        proxy.server_close()


@contextmanager
def forked(folder: Path, proxy: Proxy, *options: str) -> Iterator[Node]:
    given = (f"--fork-url={proxy.url}", f"--fork-cache-path={folder / 'cache'}", *options)
    data = folder / f"data-{len(list(folder.glob('data-*')))}"
    with NodeProcess(data, *QUIET, *given, command=("dev",)) as process:
        yield Node(f"http://127.0.0.1:{process.ports['json-rpc']}")


def counter_of(node: Node) -> str:
    block = node.ask("eth_getBlockByNumber", "0x1", False)
    address: str = node.ask("eth_getTransactionReceipt", block["transactions"][0])["contractAddress"]
    return address


def word(value: int) -> str:
    return f"0x{value:064x}"


def use(node: Node, base: int = 6) -> list[Any]:
    """Make reads, transactions and edits on a fork of block 6."""
    counter = counter_of(node)
    before = node.ask("eth_call", {"to": counter, "data": "0x01"}, "latest")
    sent = node.ask("eth_sendTransaction", {"from": FIRST, "to": counter, "data": "0x01", "gas": "0x100000"})
    receipt = node.ask("eth_getTransactionReceipt", sent)
    after = node.ask("eth_getStorageAt", counter, "0x0", "latest")
    old = node.ask("eth_getStorageAt", counter, "0x0", hex(base - 1))
    number = node.ask("evm_snapshot")
    node.ask("anvil_setStorageAt", counter, "0x0", word(0))
    node.ask("anvil_mine", "0x2")
    zero = node.ask("eth_getStorageAt", counter, "0x0", "latest")
    node.ask("evm_revert", number)
    reverted = node.ask("eth_getStorageAt", counter, "0x0", "latest")
    logs = node.ask("eth_getLogs", {"fromBlock": "0x0"})
    balance = node.ask("eth_getBalance", OTHER, "latest")
    return [before, receipt["blockNumber"], receipt["status"], after, old, zero, reverted, logs, balance]


def test_a_fork_continues_the_chain_and_a_second_run_asks_nothing(source: tuple[Node, Proxy], tmp_path: Path) -> None:
    node, proxy = source
    expected = [word(43), "0x7", "0x1", word(43), word(42), word(0), word(43), [], "0x64"]
    with forked(tmp_path, proxy, "--fork-block-number=6") as fork:
        base = node.ask("eth_getBlockByNumber", "0x6", False)
        assert fork.ask("eth_getBlockByNumber", "latest", False) == base
        assert fork.ask("eth_chainId") == "0x7a69"
        assert fork.ask("eth_getTransactionCount", FIRST, "latest") == "0x1"
        assert use(fork) == expected
        assert fork.ask("eth_getBlockByNumber", "0x7", False)["parentHash"] == base["hash"]
        fork.ask("anvil_reset")
        assert fork.ask("eth_blockNumber") == "0x6"
        assert fork.ask("eth_getStorageAt", counter_of(fork), "0x0", "latest") == word(42)
    assert node.ask("eth_getStorageAt", counter_of(node), "0x0", "latest") == word(42)
    requests = proxy.requests
    proxy.is_away = True
    try:
        with forked(tmp_path, proxy, "--fork-block-number=6") as fork:
            fork.ask("eth_getTransactionCount", FIRST, "latest")
            assert use(fork) == expected
    finally:
        proxy.is_away = False
    assert proxy.requests == requests


def test_safe_and_finalized_blocks_of_a_fork_come_from_the_source(source: tuple[Node, Proxy], tmp_path: Path) -> None:
    node, proxy = source
    with forked(tmp_path, proxy, "--fork-block-number=6", "--slots-in-an-epoch=2") as fork:
        for tag, number in (("latest", "0x6"), ("safe", "0x4"), ("finalized", "0x2")):
            assert fork.ask("eth_getBlockByNumber", tag, False) == node.ask("eth_getBlockByNumber", number, False)
        fork.ask("anvil_mine", "0x3")
        assert [fork.block(tag)["number"] for tag in ("safe", "finalized")] == ["0x7", "0x5"]


def test_a_running_node_resets_to_a_fork_and_to_another_block(source: tuple[Node, Proxy], tmp_path: Path) -> None:
    node, proxy = source
    with dev(tmp_path / "data", "--preset=anvil") as (fork, _):
        fork.ask("anvil_mine", "0x2")
        for wrong in (5, {"forking": 5}, {"forking": {"blockNumber": 3}}, {"forking": {"jsonRpcUrl": 5}}):
            assert fork.error("anvil_reset", wrong) == -32602
        fork.ask("hardhat_reset", {"forking": {"jsonRpcUrl": proxy.url, "blockNumber": 6}})
        assert fork.ask("eth_getBlockByNumber", "latest", True) == node.ask("eth_getBlockByNumber", "0x6", True)
        assert use(fork)[:2] == [word(43), "0x7"]
        fork.ask("anvil_reset", {"forking": {"blockNumber": "0x4"}})
        assert fork.ask("eth_blockNumber") == "0x4"
        assert use(fork, 4)[:2] == [word(43), "0x5"]
        fork.ask("anvil_setRpcUrl", node.url)
        assert fork.ask("anvil_nodeInfo")["forkConfig"]["forkUrl"] == node.url
        assert fork.ask("anvil_metadata")["forkedNetwork"]["forkBlockNumber"] == 4
        fork.ask("anvil_reset", {})
        assert fork.ask("eth_blockNumber") == "0x4"


def test_a_source_that_goes_away_is_one_error(source: tuple[Node, Proxy], tmp_path: Path) -> None:
    _, proxy = source
    with forked(tmp_path, proxy, "--retries=1", "--fork-retry-backoff=10") as fork:
        raw = fork.ask("eth_signTransaction", SENT)
        proxy.is_away = True
        try:
            sent = fork.answer("eth_sendRawTransaction", raw)
            asked = fork.answer("eth_getBalance", "0x00000000000000000000000000000000000000e1", "latest")
        finally:
            proxy.is_away = False
        assert "does not answer" in asked["error"]["message"]
        assert "does not answer" in sent["error"]["message"]
        assert fork.ask("eth_getTransactionReceipt", fork.ask("eth_sendRawTransaction", raw))["status"] == "0x1"
        assert fork.ask("eth_getBalance", "0x00000000000000000000000000000000000000e1", "latest") == "0x0"


def test_a_fork_address_that_is_away_is_one_clear_error(tmp_path: Path) -> None:
    given = ("--fork-url=http://127.0.0.1:9", "--retries=1", "--fork-retry-backoff=10", "--no-storage-caching")
    said = refusal("dev", *given)
    assert "source of the fork does not answer, trying again source=127.0.0.1:9 reason=Connection refused" in said
    assert "The source of the fork, http://127.0.0.1:9, does not answer" in said


def test_a_reset_to_a_closed_port_is_one_error_after_few_attempts(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil", "--fork-cache-path=" + str(tmp_path)) as (node, _):
        asked = node.answer("anvil_reset", {"forking": {"jsonRpcUrl": "http://127.0.0.1:9"}})
        assert "The source of the fork, http://127.0.0.1:9, does not answer (Connection refused)" in str(asked["error"])
        assert node.ask("eth_blockNumber") == "0x0"


def test_a_fork_begins_right_after_a_transaction(tmp_path: Path) -> None:
    with dev(tmp_path / "source", "--preset=anvil", "--no-mining") as (node, process):
        node.ask("anvil_mine", "0x3")
        third, fee = "0x" + "c3" * 20, {"gas": "0x5208", "maxFeePerGas": hex(10**11)}
        first = {"from": FIRST, "to": third, "value": "0x1", "maxPriorityFeePerGas": "0x1", **fee}
        hashes = [node.ask("eth_sendTransaction", {**first, "nonce": hex(number)}) for number in range(3)]
        better = {"from": SECOND, "to": third, "value": "0x7", "maxPriorityFeePerGas": hex(10**9), **fee}
        node.ask("eth_sendTransaction", better)
        node.ask("anvil_mine", "0x3")
        block = node.block("0x4")
        assert block["transactions"][1:] == hashes
        proxy = Proxy(("127.0.0.1", 0), Forwarding)
        proxy.target = process.ports["json-rpc"]
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            with forked(tmp_path, proxy, f"--fork-transaction-hash={hashes[1]}") as fork:
                made = fork.block("latest")
                for name in ("number", "parentHash", "timestamp", "baseFeePerGas", "mixHash"):
                    assert made[name] == block[name]
                assert made["transactions"] == block["transactions"][:3]
                assert fork.balance(third) == 9
                assert fork.ask("eth_getTransactionReceipt", hashes[2]) is None
                assert fork.receipt(fork.send(FIRST, third)) is not None, "automine goes on"
            unknown = "0x" + "11" * 32
            said = refusal(
                "dev", *QUIET, "--rpc-http-port=0", f"--fork-url={proxy.url}", f"--fork-transaction-hash={unknown}"
            )
            assert f"has no block with {unknown}" in said
            assert "Traceback" not in said
        finally:
            proxy.shutdown()
            proxy.server_close()


def test_a_fork_with_the_preset_of_hardhat_answers_like_hardhats_node(
    source: tuple[Node, Proxy], tmp_path: Path
) -> None:
    _, proxy = source
    cache = f"--fork-cache-path={tmp_path}"
    with dev(tmp_path / "data", "--preset=hardhat", f"--fork-url={proxy.url}", cache) as (node, _):
        assert node.ask("hardhat_setBalance", OTHER, "0x1") is True
        failing = {"from": FIRST, "data": "0x60006000fd", "gas": "0x20000"}
        raw = node.ask("eth_signTransaction", failing)["raw"]
        for name, given in (("eth_call", failing), ("eth_sendTransaction", failing), ("eth_sendRawTransaction", raw)):
            error = node.answer(name, given)["error"]
            expected = "Nonce too low. " if name == "eth_sendRawTransaction" else "Transaction reverted without"
            assert error["message"].removeprefix("Error: ").startswith(expected)
        raw = node.ask("eth_signTransaction", failing)["raw"]
        error = node.answer("eth_sendRawTransaction", raw)["error"]
        assert error["message"] == "Error: Transaction reverted without a reason string"
