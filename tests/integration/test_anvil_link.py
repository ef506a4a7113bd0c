"""A link named anvil: the program behaves as Anvil's command line, with a real process."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ophion.testing.wait_for import wait_for
from tests.clients.dev_scripts import FIRST, OTHER, Node
from tests.conftest import ROOT
from tests.integration.command import environment

_PROGRAM = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT / "src")!r})
from ophion.__main__ import program
program()
"""


@pytest.fixture
def anvil(tmp_path: Path) -> Path:
    """A link with this name to a program."""
    program, link = tmp_path / "program", tmp_path / "anvil"
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    link.symlink_to(program)
    return link


@contextmanager
def started(anvil: Path, *options: str) -> Iterator[tuple[Node, list[str]]]:
    """Start a node on a free port, and wait for the line that tools of Anvil wait for."""
    process = subprocess.Popen(
        [anvil, "--port=0", *options], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if found := re.fullmatch(r"Listening on .*:(\d+)", lines[-1]):
                break
        else:
            raise AssertionError("\n".join(lines))
        rest = threading.Thread(target=lambda: lines.extend(process.stdout or ()))
        rest.start()
        yield Node(f"http://127.0.0.1:{found.group(1)}"), lines
    finally:
        process.terminate()
        process.wait(60)
    rest.join(60)


def test_an_option_without_effect_writes_nothing_to_stderr(anvil: Path) -> None:
    process = subprocess.Popen(
        [anvil, "--port=0", "--prune-history"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("Listening on"):
            break
    process.terminate()
    assert process.communicate(timeout=60)[1] == ""
    assert any(line.startswith("Warning: --prune-history has no effect.") for line in lines)


def test_tools_find_the_banner_and_the_methods(anvil: Path, tmp_path: Path) -> None:
    out = tmp_path / "config.json"
    with started(anvil, "-a", "2", "--mnemonic-seed-unsafe", "1", "--config-out", str(out), "-j", "2") as (node, lines):
        assert node.ask("web3_clientVersion").startswith("anvil/v1.7.1/")
        assert node.ask("eth_accounts")[0] == "0x95132632579b073d12a6673e18ab05777a6b86f8"
        with started(anvil) as (other, _):
            assert other.ask("eth_accounts")[0] == FIRST, "two nodes run side by side"
    assert "Warning: --threads has no effect. The node chooses its threads by itself." in lines
    account = "(0) 0x95132632579b073d12a6673e18ab05777a6b86f8 (10000.000000000000000000 eth)"
    assert account in (line.lower() for line in lines)
    written = json.loads(out.read_text())
    assert written["wallet"]["mnemonic"].startswith("gesture car maximum")
    assert (written["base_fee"], written["gas_price"], written["gas_limit"]) == ("1000000000", "1875000000", None)


def test_the_socket_of_ipc_answers(anvil: Path, tmp_path: Path) -> None:
    path = tmp_path / "node.ipc"
    with started(anvil, "--ipc", str(path)), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}')
        assert json.loads(client.makefile().readline()) == {"jsonrpc": "2.0", "id": 1, "result": "0x7a69"}
    assert not path.exists()


def test_several_addresses_are_served(anvil: Path) -> None:
    with started(anvil, "--host", "127.0.0.1,127.0.0.2") as (node, lines):
        second = Node(node.url.replace("127.0.0.1", "127.0.0.2"))
        assert node.ask("eth_chainId") == "0x7a69"
        assert second.ask("eth_chainId") == "0x7a69"
    assert sum(line.startswith("Listening on") for line in lines) == 2


def test_a_genesis_file_adds_accounts_chain_id_and_header(anvil: Path, tmp_path: Path) -> None:
    file = tmp_path / "genesis.json"
    account = {"balance": "0x99", "code": "0x6001", "storage": {"0x01": "0x02"}}
    document = {
        "config": {"chainId": 4242},
        "timestamp": "0x6500000",
        "gasLimit": "0x1000000",
        "alloc": {OTHER: account},
    }
    file.write_text(json.dumps(document))
    with started(anvil, "--init", str(file)) as (node, _):
        assert node.ask("eth_chainId") == hex(4242)
        assert node.balance(OTHER) == 0x99
        assert node.balance(FIRST) == 10_000 * 10**18
        assert int(node.ask("eth_getStorageAt", OTHER, "0x1", "latest"), 16) == 2
        assert node.block("0x0")["timestamp"] == "0x6500000"
        node.ask("anvil_mine")
        assert int(node.block("latest")["timestamp"], 16) - 0x6500000 < 3600, "time goes on from the genesis block"


def test_safe_and_finalized_follow_epochs(anvil: Path) -> None:
    with started(anvil, "--slots-in-an-epoch", "2") as (node, _):
        node.ask("anvil_mine", "0xa")
        assert [node.block(tag)["number"] for tag in ("latest", "safe", "finalized")] == ["0xa", "0x8", "0x6"]
    with started(anvil) as (node, _):
        node.ask("anvil_mine", "0x50")
        assert [node.block(tag)["number"] for tag in ("latest", "safe", "finalized")] == ["0x50", "0x30", "0x10"]


def test_blocks_are_made_for_transactions_and_at_an_interval(anvil: Path) -> None:
    with started(anvil, "--mixed-mining", "--block-time", "0.05") as (node, _):
        hash = node.ask("eth_sendTransaction", {"from": FIRST, "to": OTHER, "value": "0x1"})
        assert node.ask("eth_getTransactionReceipt", hash) is not None
        number = node.number()
        wait_for(lambda: node.number() > number + 2)


def test_the_state_is_written_at_an_interval(anvil: Path, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    with started(anvil, "--state", str(tmp_path), "-s", "0.1"):
        wait_for(file.exists)
    assert "accounts" in json.loads(file.read_text())


def test_rules_and_prices_follow_the_options(anvil: Path) -> None:
    options = ("--enable-tx-gas-limit", "--disable-min-priority-fee", "--disable-default-create2-deployer")
    with started(anvil, *options) as (node, _):
        assert node.error("eth_sendTransaction", {"from": FIRST, "to": OTHER, "gas": hex(2**24 + 1)})
        assert node.ask("eth_maxPriorityFeePerGas") == "0x0"
        assert node.ask("eth_gasPrice") == hex(10**9)
        assert node.ask("eth_getCode", "0x4e59b44847b379578588920cA78FbF26c0B4956C", "latest") == "0x"


def test_traces_are_printed(anvil: Path) -> None:
    with started(anvil, "--print-traces") as (node, lines):
        node.send(FIRST, OTHER)
        wait_for(lambda: any("execution traced in=transaction:0x" in line for line in lines))
        node.ask("eth_call", {"data": "0x61ffff51"}, "latest")
        wait_for(lambda: any("execution traced in=eth_call" in line for line in lines))


@pytest.mark.parametrize(("given", "code"), [(["--version"], 0), (["completions", "bash"], 0), (["--celo"], 2)])
def test_texts_and_misuse_end_at_once(anvil: Path, given: list[str], code: int) -> None:
    done = subprocess.run([anvil, *given], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert os.path.basename(anvil) in done.stdout + done.stderr


def test_the_genesis_block_may_have_a_number(anvil: Path, tmp_path: Path) -> None:
    file, data = tmp_path / "state.json", f"--data-path={tmp_path / 'data'}"
    with started(anvil, "--number", "5", "--timestamp", "1700000000", "--dump-state", str(file), data) as (node, _):
        assert node.number() == 5
        assert [node.block(tag)["number"] for tag in ("earliest", "safe", "0x5")] == ["0x5"] * 3
        assert node.ask("eth_getBlockByNumber", "0x4", False) is None
        assert node.balance(FIRST) == 10_000 * 10**18
        snapshot = node.ask("evm_snapshot")
        assert node.mined(node.send(FIRST, OTHER))["blockNumber"] == "0x6"
        node.ask("anvil_mine", "0x2")
        assert node.ask("eth_feeHistory", "0x10", "latest", [])["oldestBlock"] == "0x5"
        assert node.ask("evm_revert", snapshot) is True
        assert node.number() == 5
        node.mined(node.send(FIRST, OTHER))
        head = node.block()["hash"]
    with started(anvil, "--number", "5", "--timestamp", "1700000000", data) as (node, _):
        assert (node.number(), node.block()["hash"]) == (6, head), "the chain goes on after a restart"
        assert node.balance(OTHER) == 1
    with started(anvil, "--number", "5", "--timestamp", "1700000000", "--load-state", str(file)) as (node, _):
        assert (node.number(), node.balance(OTHER)) == (6, 1)
    with started(anvil, "--load-state", str(file)) as (node, _):
        assert (node.number(), node.balance(OTHER)) == (6, 1)
