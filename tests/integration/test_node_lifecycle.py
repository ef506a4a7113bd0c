"""Tests a node as a process: starting, mining, stopping, and all refusals to start."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from ophion.testing.node_process import COMMAND, MINING, NodeProcess, RpcFailure, environment
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from ophion.testing.wait_for import wait_for

B, C = DEV_KEYS[1:]


def ophion(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment(),
    )


def test_a_transaction_is_mined_at_once_and_the_node_stops_cleanly(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *MINING) as node:
        node.receipt(node.send(legacy_transaction(B, 0)))
        receipt = node.receipt(node.send(legacy_transaction(B, 1, value=7, to=bytes([9]) * 20)))
        assert receipt["status"] == "0x1"
        assert node.rpc("eth_getBalance", "0x" + "09" * 20, "latest") == "0x7"
        assert node.height == 2
        assert node.stop() == 0
    assert not (tmp_path / "data" / "ophion.ports").exists()
    log = node.output()
    for line in (
        "Setting logging level to INFO",
        "Starting ophion/v",
        "Generated new key 0x",
        "JsonRPC service started and listening on 127.0.0.1:",
        "Enode URL enode://",
        "Ethereum main loop is up.",
        "Produced and imported block #2 / 1 tx / 0 om / 21000 (0.0%) gas / (0x",
        "Stopped.",
    ):
        assert line in log, line


def started_preset(*before: str) -> tuple[subprocess.Popen[str], Path]:
    """Start `ophion dev`. Returns the process and its temporary directory."""
    ports = ("--rpc-http-port=0", "--rpc-ws-port=0", "--graphql-http-port=0")
    node = subprocess.Popen(
        [*before, *COMMAND, "dev", *ports],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    )
    assert node.stdout is not None
    path = None
    for line in node.stdout:
        if "stored it to " in line:
            path = Path(line.partition("stored it to ")[2].strip()).parent
        if "main loop is up" in line:
            break
    assert path is not None
    return node, path


def test_the_end_of_its_terminal_stops_a_node_and_leaves_nothing_behind() -> None:
    node, path = started_preset()
    node.send_signal(signal.SIGHUP)
    assert node.wait(60) == 0
    assert not path.exists()


@pytest.mark.skipif(shutil.which("nohup") is None, reason="nohup is not here")
def test_a_node_started_to_outlive_its_terminal_does() -> None:
    node, path = started_preset("nohup")
    node.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        node.wait(0.5)
    node.send_signal(signal.SIGTERM)
    assert node.wait(60) == 0
    assert not path.exists()


def test_a_restart_finds_the_same_chain_and_the_same_key(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data", *MINING, "--rpc-http-api=ETH,NET,ADMIN")
    with node:
        node.receipt(node.send(legacy_transaction(B, 0)))
        head, identity = node.rpc("eth_getBlockByNumber", "latest", False), node.rpc("admin_nodeInfo")["id"]
        assert node.stop(signal.SIGINT) == 0
    with node:
        assert node.rpc("eth_getBlockByNumber", "latest", False) == head
        assert node.rpc("admin_nodeInfo")["id"] == identity
        output = node.output()
        assert "Loaded key 0x" in output
        assert f"chain head number=1 hash={head['hash']}" in output, "an operator sees what is there"


def test_a_missing_key_file_is_named_as_the_reason_for_a_new_key(tmp_path: Path) -> None:
    file = tmp_path / "keys" / "mine"
    with NodeProcess(tmp_path / "data", f"--node-private-key-file={file}") as node:
        [line] = [line for line in node.output().splitlines() if "Generated new key" in line]
        assert line.endswith(f"and stored it to {file}, because that file was missing")
        node.stop()
    with NodeProcess(tmp_path / "data", f"--node-private-key-file={file}") as node:
        assert f"from {file}" in node.output()


def test_lines_of_json_go_to_a_file_that_is_rotated(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "node.log"
    options = (f"--logging-file={file}", "--logging-format=json", "--logging-files-kept=2", "--logging=ALL")
    with NodeProcess(tmp_path / "data", *MINING, *options) as node:
        node.receipt(node.send(legacy_transaction(B, 0)))
        file.rename(file.with_name("moved"))
        limit, nonce = time.monotonic() + 60, 1
        while not file.exists() and time.monotonic() < limit:
            node.receipt(node.send(legacy_transaction(B, nonce)))
            nonce += 1
        assert node.stop() == 0
    lines = [
        json.loads(line) for name in ("moved", "node.log") for line in file.with_name(name).read_text().splitlines()
    ]
    assert {line["level"] for line in lines} >= {"INFO"}
    assert lines[0]["message"] == "Setting logging level to ALL"
    assert lines[-1]["message"] == "Stopped."
    assert node.output() == ""


def test_lines_go_to_a_file_and_to_the_console(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "node.log"
    with NodeProcess(tmp_path / "data", *MINING, f"--logging-file={file}", "--logging-console") as node:
        assert node.stop() == 0
    assert file.read_text() == node.output() != ""
    (tmp_path / "plain").touch()
    refused = f"--logging-file={tmp_path / 'plain' / 'node.log'}"
    with NodeProcess(tmp_path / "data", *MINING, refused, "--logging-console") as node:
        assert f"The log file {tmp_path / 'plain' / 'node.log'} cannot be written" in node.output()


def test_a_log_file_says_why_a_node_has_ended(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "node.log"
    with NodeProcess(data, *MINING) as node:
        node.receipt(node.send(legacy_transaction(B, 0)))
        node.stop()
    options = (f"--data-path={data}", *MINING, "--p2p-enabled=false", "--override-genesis-config=chainId=7")
    refused = ophion(*options, f"--logging-file={file}")
    assert refused.returncode == 1
    assert "chainId was 2018 and is 7" in refused.stderr
    assert (
        file.read_text().splitlines()[-1].endswith(f"node stopped by an error reason={refused.stderr.splitlines()[-1]}")
    )
    # on standard output, the error text does not appear a second time
    assert "chainId" not in ophion(*options).stdout


def test_mining_can_be_started_and_stopped(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--network=dev", "--rpc-http-api=ETH,MINER,TXPOOL") as node:
        hash = node.send(fee_transaction(B, 0))
        with pytest.raises(RpcFailure, match="-32010 Coinbase not set"):
            node.rpc("miner_start")
        assert node.rpc("eth_mining") is False
        node.rpc("miner_setCoinbase", "0x" + DEV_KEYS[0].address.hex())
        assert node.rpc("miner_start") is True
        assert node.rpc("eth_mining") is True
        node.receipt(hash)
        assert node.rpc("miner_stop") is True
        assert node.rpc("eth_mining") is False


def test_a_block_period_makes_blocks_on_schedule(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *MINING, "--block-period=0.2") as node:
        began, before = time.monotonic(), node.height
        wait_for(lambda: node.height >= before + 6)
        # the first block may be due at once, and all later blocks are at least a period apart
        made = node.height - before
        assert time.monotonic() - began > (made - 1.5) * 0.2


def test_real_work_is_done_where_the_genesis_asks_for_it(tmp_path: Path) -> None:
    genesis = tmp_path / "genesis.json"
    genesis.write_text(
        json.dumps(
            {
                "config": {"chainId": 77, "petersburgBlock": 0, "ethash": {"fixeddifficulty": 4}},
                "difficulty": "0x4",
                "gasLimit": "0x1000000",
            }
        )
    )
    options = (f"--genesis-file={genesis}", "--miner-enabled", f"--miner-coinbase=0x{B.address.hex()}")
    with NodeProcess(tmp_path / "data", *options) as node:
        wait_for(lambda: node.height >= 2)
        assert node.stop() == 0
    exported = tmp_path / "chain.rlp"
    assert (
        ophion("blocks", "export", f"--to={exported}", *options[:1], f"--data-path={tmp_path / 'data'}").returncode == 0
    )
    imported = ophion("blocks", "import", f"--from={exported}", *options[:1], f"--data-path={tmp_path / 'copy'}")
    assert imported.returncode == 0, imported.stderr


def test_a_second_process_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--network=dev") as node:
        second = ophion(f"--data-path={node.data_path}", "--network=dev")
        assert second.returncode == 1
        assert f"is in use by process {node.pid}" in second.stderr
        assert "Traceback" not in second.stderr


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = ophion(
            f"--data-path={tmp_path / 'data'}", "--rpc-http-enabled", f"--rpc-http-port={port}", "--p2p-enabled=false"
        )
    assert refused.returncode == 1
    assert f"127.0.0.1:{port}" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_all_configuration_errors_are_reported_before_anything_starts(tmp_path: Path) -> None:
    refused = ophion(
        f"--data-path={tmp_path / 'data'}",
        "--miner-enabled",
        "--privacy-enabled",
        "--privacy-url=http://127.0.0.1:8888",
        "--pruning-enabled",
    )
    assert refused.returncode == 1
    assert "Unable to mine without a valid coinbase." in refused.stderr
    assert "Please specify Enclave public key file path to enable privacy" in refused.stderr
    assert "--privacy-enabled needs every state" in refused.stderr
    assert not (tmp_path / "data").exists()


def test_another_genesis_is_refused_with_both_hashes(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data", "--network=dev")
    with node:
        node.stop()
    refused = ophion(f"--data-path={node.data_path}", "--network=dev", "--dev-fork=petersburg", "--p2p-port=0")
    assert refused.returncode == 1
    assert "Supplied genesis block does not match stored chain data." in refused.stderr


def test_variables_and_files_set_options_and_flags_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text('min-gas-price=5\nminer-extra-data="0x01"\nrpc-http-api=["ETH","MINER"]\n')
    monkeypatch.setenv("OPHION_MIN_GAS_PRICE", "7")
    with NodeProcess(tmp_path / "data", f"--config-file={file}", "--miner-extra-data=0x02") as node:
        assert node.rpc("miner_getMinGasPrice") == "0x7"
        assert node.rpc("miner_getExtraData") == "0x02"


def test_the_preset_shows_a_person_what_they_look_for() -> None:
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "dev", "--rpc-http-port=0", "--rpc-ws-port=0", "--graphql-http-port=0"],
        stdout=child,
        stderr=child,
        env=environment(),
    )
    os.close(child)
    written = b""
    try:
        while written.count(b" ether") < 13:
            assert select.select([parent], [], [], 60)[0], written
            written += os.read(parent, 65536)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        os.close(parent)
    shown = written.decode()
    assert "http://127.0.0.1:" in shown
    assert "ws://127.0.0.1:" in shown
    assert "chain id 2018 (0x7e2)" in shown
    assert "public test keys" in shown
    path = Path(next(line.split()[1] for line in shown.splitlines() if line.strip().startswith("Data ")))
    assert not path.exists(), "the temporary place is gone"
