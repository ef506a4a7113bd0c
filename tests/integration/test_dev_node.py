"""Cheat codes of `ophion dev`: their effects on a running node, and the nodes that refuse them."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ophion.native.crypto import keccak256
from ophion.testing.node_process import NodeProcess
from ophion.testing.wait_for import wait_for
from tests.clients.dev_scripts import CODE, FIRST, OTHER, SECOND, WHALE, Node, going_back, snapshot_and_revert
from tests.integration.command import OPHION, environment

QUIET = ("--rpc-ws-port=0", "--graphql-http-enabled=false", "--page-http-enabled=false")


@contextmanager
def dev(data: Path, *options: str, level: str = "WARN") -> Iterator[tuple[Node, NodeProcess]]:
    with NodeProcess(data, *QUIET, f"--logging={level}", *options, command=("dev",)) as process:
        yield Node(f"http://127.0.0.1:{process.ports['json-rpc']}"), process


@pytest.fixture(scope="module")
def dev_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with dev(tmp_path_factory.mktemp("dev")) as (_, process):
        yield process.ports["json-rpc"]


def refusal(*arguments: str) -> str:
    """Return the error of a node that refuses to start."""
    ran = subprocess.run(
        [*OPHION, *arguments], env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode != 0
    return ran.stdout + ran.stderr


# --- nodes with cheat codes ----------------------------------------------------------------------


def test_cheat_codes_need_the_development_network(tmp_path: Path) -> None:
    genesis = {"config": {"chainId": 7, "ethash": {}}, "difficulty": "0x1", "gasLimit": "0x1000000", "alloc": {}}
    file = tmp_path / "genesis.json"
    file.write_text(json.dumps(genesis))
    given = (f"--genesis-file={file}", f"--data-path={tmp_path / 'data'}", "--rpc-http-enabled", "--p2p-enabled=false")
    for group in ("ANVIL", "EVM", "HARDHAT"):
        assert "belong to --network=dev" in refusal(*given, f"--rpc-http-api=ETH,{group}")


def test_blocks_are_made_on_demand_or_at_an_interval(tmp_path: Path) -> None:
    given = ("dev", f"--data-path={tmp_path / 'data'}", "--no-mining", "--block-time=1")
    assert "Choose one of them" in refusal(*given)


def test_cheat_codes_need_a_chain_without_peers(tmp_path: Path) -> None:
    given = ("--network=dev", f"--data-path={tmp_path / 'data'}", "--rpc-http-enabled", "--rpc-http-api=EVM")
    assert "--p2p-enabled=false" in refusal(*given)


def test_a_development_node_with_peers_has_none(tmp_path: Path) -> None:
    peers = ("--p2p-enabled=true", "--p2p-interface=127.0.0.1", "--p2p-port=0", "--discovery-enabled=false")
    with dev(tmp_path / "data", *peers) as (node, _):
        assert node.error("evm_snapshot") == -32601


# --- plain `ophion dev` --------------------------------------------------------------------------


def test_plain_dev_keeps_its_defaults_and_has_cheat_codes(tmp_path: Path) -> None:
    with dev(tmp_path / "data") as (node, _):
        assert node.ask("eth_chainId") == "0x7e2"
        assert node.ask("net_peerCount") == "0x0"
        assert node.ask("net_listening") is False
        assert node.ask("debug_traceBlockByNumber", "0x0") == []
        assert node.ask("admin_nodeInfo")["protocols"]["eth"]["network"] == 2018
        assert snapshot_and_revert(node)[:5] == ["0x0", 1, 10**18, "0x1", 4]


def test_clients_of_a_preset_see_a_node_that_listens(tmp_path: Path) -> None:
    # programs ask this to check their connection
    for preset in ("anvil", "hardhat"):
        with dev(tmp_path / preset, f"--preset={preset}") as (node, _):
            assert node.ask("net_listening") is True


def test_mining_many_blocks_outlasts_the_request_timeout(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil", "--rpc-timeout-seconds=1") as (node, _):
        node.ask("hardhat_mine", "0x2710")
        assert node.ask("eth_blockNumber") == "0x2710"


# --- state and head ------------------------------------------------------------------------------


def test_an_edit_without_a_block_survives_a_restart(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil", "--timestamp=1") as (node, _):
        node.ask("anvil_mine", "0x2")
        node.ask("anvil_setBalance", OTHER, "0x64")
        node.ask("anvil_setStorageAt", OTHER, "0x1", f"0x{7:064x}")
    with dev(tmp_path / "data", "--preset=anvil", "--timestamp=1") as (node, _):
        assert node.ask("eth_getBalance", OTHER, "latest") == "0x64"
        assert node.ask("eth_getStorageAt", OTHER, "0x1", "latest") == f"0x{7:064x}"
        node.ask("anvil_mine")
        assert node.ask("eth_getBalance", OTHER, "latest") == "0x64"
        number = node.ask("evm_snapshot")
        node.ask("anvil_setBalance", OTHER, "0xc8")
        node.ask("evm_revert", number)
    with dev(tmp_path / "data", "--preset=anvil", "--timestamp=1") as (node, _):
        assert node.ask("eth_getBalance", OTHER, "latest") == "0x64"


def test_blocks_build_upon_edited_states_and_reverts_bring_them_back(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        node.ask("anvil_setBalance", OTHER, "0x64")
        outer = node.ask("evm_snapshot")
        node.ask("anvil_setBalance", OTHER, "0xc8")
        node.ask("anvil_setCode", WHALE, CODE)
        inner = node.ask("evm_snapshot")
        node.mined(node.send(FIRST, OTHER, 1))
        assert node.balance(OTHER) == 201
        assert node.ask("eth_getBalance", OTHER, "0x0") == "0xc8", "the state of a block is the one that was edited"
        node.ask("anvil_setBalance", OTHER, "0x0")
        node.ask("anvil_mine", "0x12c")
        assert node.balance(OTHER) == 0
        assert node.ask("evm_revert", inner)
        assert (node.number(), node.balance(OTHER), node.ask("eth_getCode", WHALE, "latest")) == (0, 200, CODE)
        node.mined(node.send(SECOND, OTHER, 2))
        assert node.balance(OTHER) == 202
        assert node.ask("evm_revert", outer)
        assert (node.balance(OTHER), node.ask("eth_getCode", WHALE, "latest")) == (100, "0x")
        node.ask("evm_mine")
        assert node.balance(OTHER) == 100


def test_nothing_of_reverted_blocks_is_shown(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        number = node.ask("evm_snapshot")
        hash = node.send(FIRST, OTHER, 5)
        block = node.mined(hash)["blockHash"]
        node.ask("anvil_mine", "0x5")
        assert node.ask("evm_revert", number)
        assert node.receipt(hash) is None
        assert node.ask("eth_getTransactionByHash", hash) is None
        assert node.ask("eth_getBlockByNumber", "0x1", False) is None
        assert node.ask("eth_getBlockByHash", block, False) is None
        assert node.ask("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"}) == []
        node.ask("anvil_mine", "0x8")
        assert node.receipt(hash) is None
        assert node.ask("eth_getTransactionByHash", hash) is None
        again = node.send(FIRST, OTHER, 5)
        assert int(node.mined(again)["blockNumber"], 16) == 9


def test_pending_transactions_are_restored_with_a_snapshot(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil", "--no-mining") as (node, _):
        first = node.send(FIRST, OTHER, 5)
        number = node.ask("evm_snapshot")
        second = node.send(FIRST, OTHER, 6)
        node.ask("evm_mine")
        assert node.receipt(second) is not None
        assert node.ask("evm_revert", number)
        assert node.ask("txpool_status") == {"pending": "0x1", "queued": "0x0"}
        node.ask("evm_mine")
        assert node.receipt(first) is not None
        assert node.receipt(second) is None


def test_the_chain_can_go_back(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        assert going_back(node) == [11, None, 8, 0, -32602, None, 8, False, "0x3", None, 0, 10**22]


def test_timestamps_stay_with_the_clock(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        start = node.time()
        for _ in range(50):
            node.mined(node.send(FIRST, OTHER, 1))
        # the node makes more than one block per second; with distinct timestamps, the chain would be ahead of the clock
        assert node.number() == 50
        assert node.time() - start < 45


# --- options -------------------------------------------------------------------------------------


def test_a_request_after_the_answer_to_a_transaction_sees_its_block(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (_, process):
        sender, reader = (http.client.HTTPConnection("127.0.0.1", process.ports["json-rpc"]) for _ in range(2))

        def ask(client: http.client.HTTPConnection, method: str, *params: object) -> Any:
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            client.request("POST", "/", body, {"Content-Type": "application/json"})
            return json.loads(client.getresponse().read())["result"]

        ask(reader, "eth_chainId")
        transfer = {"from": FIRST, "to": OTHER, "value": "0x1", "gas": "0x5208"}
        for number in range(1, 201):
            ask(sender, "eth_sendTransaction", transfer)
            assert ask(reader, "eth_blockNumber") == hex(number)
            ask(sender, "eth_getTransactionReceipt", "0x" + "00" * 32)
        sender.close()
        reader.close()


def test_an_interval_outside_40_bits_is_refused(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        assert node.error("evm_setIntervalMining", hex(2**64)) == -32602
        assert node.ask("anvil_getIntervalMining") is None


def test_options_of_anvil_are_understood(tmp_path: Path) -> None:
    out, dump = tmp_path / "config.json", tmp_path / "state.json"
    options = ("--preset=anvil", "--accounts=2", "--balance=5", "--chain-id=99", "--timestamp=1700000000")
    more = ("--gas-limit=12345678", "--base-fee=7", "--hardfork=cancun", f"--config-out={out}", f"--dump-state={dump}")
    with dev(tmp_path / "data", *options, *more) as (node, process):
        assert len(node.ask("eth_accounts")) == 2
        assert node.balance(FIRST) == 5 * 10**18
        assert node.ask("eth_chainId") == hex(99)
        genesis = node.block("0x0")
        assert (genesis["timestamp"], genesis["gasLimit"], genesis["baseFeePerGas"]) == (
            hex(1_700_000_000),
            hex(12_345_678),
            "0x7",
        )
        assert "requestsHash" not in genesis
        node.ask("anvil_setBalance", OTHER, "0x55")
        process.stop()
    written = json.loads(out.read_text())
    assert written["available_accounts"][0] == FIRST
    assert len(written["private_keys"]) == 2
    assert (written["base_fee"], written["gas_limit"], written["genesis_timestamp"]) == ("7", "12345678", "1700000000")
    assert json.loads(dump.read_text())["accounts"][OTHER]["balance"] == "0x55"
    with dev(tmp_path / "again", "--preset=anvil", f"--load-state={dump}") as (node, _):
        assert node.balance(OTHER) == 0x55


def test_a_state_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with dev(tmp_path / "data", f"--dump-state={folder / 'state.json'}") as (_, process):
        (folder / "state.json").mkdir()
        process.stop()
    assert f"cannot write the state file path={folder / 'state.json'} reason=Is a directory" in process.output()
    said = refusal("dev", f"--data-path={tmp_path / 'other'}", *QUIET, "--rpc-http-port=0", f"--dump-state={folder}")
    assert f"(--dump-state, --state): {folder / 'state.json'} is a folder" in said
    assert "Traceback" not in said
    said = refusal("dev", f"--data-path={tmp_path / 'other'}", *QUIET, "--rpc-http-port=0", f"--config-out={folder}")
    assert f"--config-out: {folder}: Is a directory" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("option", ["--state", "--load-state"])
def test_a_bad_state_file_is_reported_with_the_option_that_names_it(option: str, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text("no state")
    said = refusal("dev", f"--data-path={tmp_path / 'data'}", *QUIET, "--rpc-http-port=0", f"{option}={file}")
    assert f"{option}: {file}: " in said
    assert ("--load-state" in said) is (option == "--load-state")


def test_the_preset_of_anvil_signs_for_the_first_account(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        raw = node.ask("eth_signTransaction", {"to": OTHER, "value": "0x", "maxPriorityFeePerGas": "0x"})
        sent = node.ask("eth_getTransactionByHash", node.ask("eth_sendRawTransaction", raw))
        assert (sent["from"], sent["value"], sent["maxPriorityFeePerGas"]) == (FIRST, "0x0", "0x0")


def test_the_preset_of_anvil_has_anvils_words(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        stranger = {"from": "0x" + "69" * 20, "to": FIRST}
        error = node.answer("eth_sendTransaction", stranger)["error"]
        assert (error["code"], error["message"]) == (-32602, "No Signer available")
        poor = {"from": FIRST, "to": OTHER, "value": hex(10**30)}
        for name, call in (("eth_sendTransaction", poor), ("eth_call", poor)):
            error = node.answer(name, call)["error"]
            assert (error["code"], error["message"]) == (-32003, "Insufficient funds for gas * price + value")
        for fields, code, text in (
            ({"gas": hex(10**9)}, -32000, "intrinsic gas too high -- tx.gas_limit > env.block.gas_limit"),
            (
                {"maxFeePerGas": hex(10**9), "maxPriorityFeePerGas": hex(2 * 10**9)},
                -32003,
                "max priority fee per gas higher than max fee per gas",
            ),
        ):
            error = node.answer("eth_sendTransaction", {"from": FIRST, "to": OTHER, **fields})["error"]
            assert (error["code"], error["message"]) == (code, text)


def test_a_new_gas_limit_of_blocks_applies_to_the_next_transaction(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        large = {"from": FIRST, "to": OTHER, "gas": hex(40_000_000)}
        assert node.answer("eth_sendTransaction", large)["error"]["code"] == -32000
        node.ask("evm_setBlockGasLimit", hex(50_000_000))
        assert node.ask("eth_getTransactionReceipt", node.ask("eth_sendTransaction", large))["status"] == "0x1"
        node.ask("evm_setBlockGasLimit", hex(30_000_000))
        assert node.answer("eth_sendTransaction", large)["error"]["code"] == -32000


def test_a_pending_transaction_is_replaced_by_one_with_a_higher_maximum_fee(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        node.ask("evm_setAutomine", False)
        first = {"from": FIRST, "to": OTHER, "nonce": "0x0", "maxFeePerGas": hex(10**10)}
        node.ask("eth_sendTransaction", first)
        hash = node.ask("eth_sendTransaction", {**first, "maxFeePerGas": hex(2 * 10**10)})
        again = node.answer("eth_sendTransaction", {**first, "maxPriorityFeePerGas": hex(2 * 10**9)})["error"]
        assert (again["code"], again["message"]) == (-32003, "replacement transaction underpriced")
        node.ask("evm_mine")
        assert node.ask("eth_getTransactionReceipt", hash)["status"] == "0x1"


def test_fees_beyond_the_head_are_those_of_the_blocks_that_exist(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        node.ask("anvil_mine", "0x5")
        latest = node.ask("eth_feeHistory", "0x2", "latest", [50])
        assert node.ask("eth_feeHistory", "0x4", "0x7", [50]) == latest
        none = node.ask("eth_feeHistory", "0x4", "0x153b747", [50])
        assert none["oldestBlock"] == "0x153b744"
        assert (none["baseFeePerGas"], none["gasUsedRatio"], none["reward"]) == (latest["baseFeePerGas"][-1:], [], [])


def test_the_preset_of_anvil_takes_what_anvil_takes(tmp_path: Path) -> None:
    price = hex(2 * 10**9)
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        for fields, kind in (
            ({"gasPrice": price, "maxFeePerGas": price}, "0x0"),
            ({"gasPrice": price, "type": "0x2"}, "0x0"),
            ({"gasPrice": price, "accessList": []}, "0x1"),
            ({"maxFeePerGas": price, "type": "0x0"}, "0x2"),
            ({"value": "100"}, "0x2"),
            ({"to": None, "data": "0x"}, "0x2"),
        ):
            hash = node.ask("eth_sendTransaction", {"from": FIRST, "to": OTHER, **fields})
            receipt = node.ask("eth_getTransactionReceipt", hash)
            assert (receipt["type"], receipt["status"]) == (kind, "0x1")


def test_the_preset_of_anvil_refuses_a_simulation_in_anvils_words(tmp_path: Path) -> None:
    poor = {"from": "0x" + "69" * 20, "to": FIRST, "value": "0x1"}
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        for call, code, text in (
            (
                {"from": FIRST, "to": OTHER, "gas": "0x64"},
                -32000,
                "intrinsic gas too high -- CallGasCostMoreThanGasLimit",
            ),
            (poor, -32003, "Insufficient funds for gas * price + value"),
        ):
            error = node.answer("eth_simulateV1", {"blockStateCalls": [{"calls": [call]}]}, "latest")["error"]
            assert (error["code"], error["message"]) == (code, text)


def test_the_preset_of_hardhat(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=hardhat") as (node, _):
        assert node.ask("web3_clientVersion").startswith("HardhatNetwork/")
        assert len(node.ask("eth_accounts")) == 20
        assert node.ask("eth_chainId") == hex(31337)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--mnemonic=one two", "2 words"),
        ("--derivation-path=x", "does not begin with m/"),
        ("--load-state=/does/not/exist", "No such file"),
    ],
)
def test_wrong_options_are_one_clear_error(option: str, words: str, tmp_path: Path) -> None:
    ports = ("--rpc-http-port=0", "--rpc-ws-port=0", "--graphql-http-enabled=false", "--page-http-enabled=false")
    assert words in refusal("dev", option, *ports, f"--data-path={tmp_path / 'data'}")


# --- one port, and pages -------------------------------------------------------------------------


def upgraded(port: int, origin: str | None) -> bytes:
    """Return the status line of the answer to a WebSocket handshake."""
    key = base64.b64encode(os.urandom(16)).decode()
    lines = ["GET / HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
    if origin is not None:
        lines.append(f"Origin: {origin}")
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return connection.recv(4096).split(b"\r\n")[0]


def test_websocket_clients_are_taken_on_the_port_of_http(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, process):
        port = process.ports["json-rpc"]
        assert upgraded(port, None) == b"HTTP/1.1 101 Switching Protocols"
        assert upgraded(port, "http://localhost:3000") == b"HTTP/1.1 101 Switching Protocols"
        assert upgraded(port, "https://stranger.example") == b"HTTP/1.1 403 Forbidden"
        assert upgraded(port, "null") == b"HTTP/1.1 403 Forbidden"
        assert node.number() == 0


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("Titanoboa", 200),
        ("http://localhost:3000", 200),
        ("https://titanoboa", 403),
        ("https://stranger.example", 403),
        ("null", 403),
    ],
)
def test_only_tools_and_local_pages_are_answered(dev_port: int, origin: str, status: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", dev_port, timeout=30)
    body = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'
    connection.request("POST", "/", body, {"Content-Type": "application/json", "Origin": origin})
    assert connection.getresponse().status == status
    connection.close()


# --- what went wrong -----------------------------------------------------------------------------

SHOP = "0x00000000000000000000000000000000000000c1"
CONSOLE = "000000000000000000636f6e736f6c652e6c6f67"
TOO_FEW = {
    "type": "error",
    "name": "TooFew",
    "inputs": [{"name": "available", "type": "uint256"}, {"name": "needed", "type": "uint256"}],
}
TAKE = {"type": "function", "name": "take", "inputs": [], "outputs": []}


def _printing_and_failing() -> str:
    """Return code that calls `console.log("hi")` and reverts with `TooFew(1, 5)`."""
    text = keccak256(b"log(string)")[:4] + (32).to_bytes(32, "big") + (2).to_bytes(32, "big") + b"hi".ljust(32, b"\0")
    selector = keccak256(b"TooFew(uint256,uint256)")[:4].hex()
    size = f"60{len(text):02x}"
    call = f"5f5f{size}5f73{CONSOLE}5afa50"
    fails = f"63{selector}60e01b5f52" + "6001600452" + "6005602452" + "60445ffd"
    copied = f"{size}60%02x5f39"
    start = len(bytes.fromhex(copied % 0 + call + fails))
    return copied % start + call + fails + text.hex()


def test_failed_calls_and_transactions_are_explained(tmp_path: Path) -> None:
    code, artifacts = _printing_and_failing(), tmp_path / "artifacts"
    artifacts.mkdir()
    artifact = {"contractName": "Shop", "abi": [TOO_FEW, TAKE], "bytecode": "0x00", "deployedBytecode": "0x" + code}
    (artifacts / "Shop.json").write_text(json.dumps(artifact))
    with dev(tmp_path / "data", "--preset=anvil", f"--artifacts={artifacts}", level="INFO") as (node, process):
        node.ask("anvil_setCode", SHOP, "0x" + code)
        take = "0x" + keccak256(b"take()")[:4].hex()
        error = node.answer("eth_call", {"to": SHOP, "data": take}, "latest")["error"]
        assert error["message"] == "execution reverted: TooFew(available=1, needed=5)"
        assert error["data"].startswith("0x" + keccak256(b"TooFew(uint256,uint256)")[:4].hex())
        error = node.answer("eth_estimateGas", {"to": SHOP, "data": take})["error"]
        assert error["message"] == "execution reverted: TooFew(available=1, needed=5)"
        hash = node.ask("eth_sendTransaction", {"from": FIRST, "to": SHOP, "data": take, "gas": "0x30000"})
        assert node.receipt(hash)["status"] == "0x0"
        wait_for(lambda: f"in=transaction:{hash}" in process.output())
        shown = process.output()
    assert "console.log: hi" in shown
    assert "in=eth_call reason=TooFew(available=1, needed=5)" in shown
    assert "in=eth_estimateGas reason=" in shown
    assert "    Shop.take() !! TooFew(available=1, needed=5) [" in shown
    assert "    └── console.log: hi" in shown
    assert "\x1b" not in shown


def test_bad_artifacts_are_one_clear_error(tmp_path: Path) -> None:
    given = ("dev", f"--data-path={tmp_path / 'data'}", *QUIET, "--rpc-http-port=0")
    assert "--artifacts: " in (said := refusal(*given, f"--artifacts={tmp_path / 'missing'}"))
    assert "is not a folder. Compile the contracts first" in said
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "Shop.json").write_text("{")
    said = refusal(*given, f"--artifacts={tmp_path / 'bad'}")
    assert "Shop.json is not JSON" in said
    assert "Traceback" not in said


def test_an_impersonated_signature_recovers_to_its_address(tmp_path: Path) -> None:
    signature = "ab" * 32 + "cd" * 32 + "1b"
    recovery = {"to": "0x" + f"{1:040x}", "data": "0x" + "11" * 32 + f"{27:064x}" + "ab" * 32 + "cd" * 32}
    with dev(tmp_path, "--preset=anvil") as (node, _):
        before = node.ask("eth_call", recovery, "latest")
        assert node.ask("anvil_impersonateSignature", "0x" + signature, WHALE) is None
        assert node.ask("eth_call", recovery, "latest")[-40:] == WHALE[2:].lower()
        node.ask("anvil_reset")
        assert node.ask("eth_call", recovery, "latest") == before
