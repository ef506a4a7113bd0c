"""Runs `ophion dev` and a plain node from the command line, sends requests, and stops them."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from ophion.version import client_version
from tests.integration.command import OPHION, environment, ophion

FREE_PORTS = ("--rpc-http-port=0", "--rpc-ws-port=0", "--graphql-http-port=0", "--p2p-enabled=false")


def ports(data: Path, process: subprocess.Popen[bytes]) -> dict[str, int]:
    """Wait for the ports file and return its ports."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        found = list(data.glob("*.ports"))
        lines = [line.split("=") for file in found for line in file.read_text().splitlines() if "=" in line]
        if lines:
            return {name.strip(): int(port) for name, port in lines}
        time.sleep(0.02)
    raise AssertionError(f"the node did not start: exit code {process.poll()}")


def ask(port: int, method: str) -> object:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": []}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())["result"]


@contextmanager
def node(data: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    command = [*OPHION, *arguments, *FREE_PORTS, f"--data-path={data}"]
    process = subprocess.Popen(command, env=environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_dev_answers_and_stops_on_a_signal(tmp_path: Path) -> None:
    with node(tmp_path / "data", "dev") as process:
        port = ports(tmp_path / "data", process)["json-rpc"]
        assert ask(port, "web3_clientVersion") == client_version()
        assert ask(port, "eth_chainId") == "0x7e2"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"Ethereum main loop is up." in out
    assert err == b""
    assert not list((tmp_path / "data").glob("*.ports"))


def test_the_printed_command_line_does_the_same(tmp_path: Path) -> None:
    line = ophion("dev", "--print-command", "--min-gas-price=7").succeeded().out
    words = shlex.split(line)
    assert words[0] == "ophion"
    assert "--min-gas-price=7" in words
    assert "--p2p-enabled=false" in words, "a development chain opens no port for peers"
    with node(tmp_path / "data", *(word for word in words[1:] if word not in FREE_PORTS)) as process:
        port = ports(tmp_path / "data", process)["json-rpc"]
        assert ask(port, "eth_mining") is True
        assert ask(port, "eth_gasPrice") == "0x7"


def test_an_option_without_effect_is_warned_of(tmp_path: Path) -> None:
    with node(
        tmp_path / "data", "--rpc-http-enabled", "--rpc-http-cors-origins=*", "--miner-extra-data=0x01"
    ) as process:
        ports(tmp_path / "data", process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    lines = err.decode().splitlines()
    assert (
        "Warning: --miner-extra-data will have no effect unless --miner-enabled is defined on the command line."
        in lines
    )
    assert process.returncode == 0


def test_dev_warns_of_what_was_given_and_of_nothing_else(tmp_path: Path) -> None:
    with node(tmp_path / "data", "dev", "--miner-enabled=false", env={"OPHION_RPC_HTTP_PROT": "1"}) as process:
        ports(tmp_path / "data", process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert err.decode().splitlines() == [
        "Warning: Environment variable OPHION_RPC_HTTP_PROT has no effect (did you mean OPHION_RPC_HTTP_PORT?)"
    ]


def test_all_configuration_errors_come_together_before_anything_starts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    done = ophion(f"--data-path={data}", "--network=dev", "--genesis-file=g.json", "--miner-enabled")
    done.failed(
        "--network option and --genesis-file option can't be used at the same time.",
        "Unable to mine without a valid coinbase.",
        "Usage: ophion [OPTIONS] [COMMAND]",
    )
    assert not data.exists()


@pytest.mark.parametrize("flag", ["--rpc-http-host=0.0.0.0", "--rpc-ws-host=::", "--page-http-host=192.0.2.1"])
def test_unlocked_accounts_off_loopback_need_the_explicit_option(flag: str) -> None:
    refused = ophion("dev", flag).failed(f"{flag}: other machines could sign", "Add --dev-unlocked-accounts")
    assert "--dev-unlocked-accounts=false" in refused.err
    ophion("dev", flag, "--print-command").failed("Add --dev-unlocked-accounts")
    for choice in ("--dev-unlocked-accounts", "--dev-unlocked-accounts=false"):
        ophion("dev", flag, choice, "--print-command").succeeded()
    for loopback in ("127.0.0.1", "localhost", "::1", "127.8.8.8"):
        ophion("dev", f"{flag.partition('=')[0]}={loopback}", "--print-command").succeeded()
