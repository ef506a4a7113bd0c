"""A node with a Besu command line works with scripts written for Besu."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.integration.command import OPHION, environment


@pytest.mark.parametrize("is_besu", [True, False])
def test_files_and_exit_code(tmp_path: Path, is_besu: bool) -> None:
    data = tmp_path / "data"
    tokens = [f"--data-path={data}", "--rpc-http-enabled", "--rpc-http-port=0", "--p2p-enabled=false"]
    pid = tmp_path / "pid"
    besu = [
        f"--pid-path={pid}",
        "--profile=ENTERPRISE",
        "--tx-pool=sequenced",
        "--Xdns-enabled=true",
        "--rpc-http-api=ETH,NET,PLUGINS",
    ]
    command = [*OPHION, *(["besu"] if is_besu else []), *tokens, *(besu if is_besu else [])]
    env = environment({"BESU_LOGGING": "INFO", "BESU_DATA_STORAGE_FORMAT": "FOREST"})
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as node:
        try:
            deadline = time.monotonic() + 60
            while not (pid if is_besu else data / "ophion.ports").exists():
                assert node.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
            if is_besu:
                assert pid.read_text() == str(node.pid)
                assert "json-rpc=" in (data / "besu.ports").read_text()
                assert "local-ip=" in (data / "besu.networks").read_text()
            node.send_signal(signal.SIGTERM)
            _, err = node.communicate(timeout=60)
        finally:
            node.kill()
    assert node.returncode == (143 if is_besu else 0)
    assert not list(data.glob("*.ports")) + list(data.glob("besu.*")) + list(tmp_path.glob("pid"))
    assert err.count("has no effect") == (2 if is_besu else 1), err


def test_a_program_in_the_home_of_besu_uses_the_home_as_data_path(tmp_path: Path) -> None:
    script = tmp_path / "besu-24.5.4/bin/besu"
    script.parent.mkdir(parents=True)
    script.write_text("import sys\nfrom ophion.cli.main import main\nsys.exit(main())\n")
    command = [OPHION[0], str(script), "--print-paths-and-exit=nobody"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == f"PERMISSION_CHECK_PATH:{tmp_path}/besu-24.5.4:READ_WRITE\n"


def test_a_link_named_besu_is_a_besu_command(tmp_path: Path) -> None:
    script = tmp_path / "besu"
    script.write_text("import sys\nfrom ophion.cli.main import main\nsys.exit(main())\n")
    done = subprocess.run(
        [OPHION[0], str(script), "--profile=STAKER"], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Invalid value for option '--profile'" in done.stderr


def test_a_miner_on_the_dev_network_makes_blocks_without_transactions(tmp_path: Path) -> None:
    data = tmp_path / "data"
    options = ["--network=dev", "--miner-enabled", "--miner-coinbase=0xfe3b557e8fb62b89f4916b721be55ceb828dbd73"]
    ports = [f"--data-path={data}", "--rpc-http-enabled", "--rpc-http-port=0", "--p2p-enabled=false"]
    with subprocess.Popen([*OPHION, "besu", *options, *ports], env=environment(), stdout=subprocess.DEVNULL) as node:
        try:
            deadline = time.monotonic() + 60
            while _block_number(data / "besu.ports") < 2:
                assert node.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        finally:
            node.kill()


def _block_number(ports: Path) -> int:
    """Return the number of the latest block, or -1 before the node has started."""
    found = [line for line in ports.read_text().splitlines() if line.startswith("json-rpc=")] if ports.exists() else []
    if not found:
        return -1
    url = f"http://127.0.0.1:{found[0].partition('=')[2]}"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return int(json.load(response)["result"], 16)
