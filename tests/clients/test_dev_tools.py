"""Runs viem's test actions and Hardhat's network helpers, unmodified, against `ophion dev`.

`CLIENT_PACKAGES` names a folder with viem (as in test_javascript.py). `HARDHAT_PACKAGES` names a folder with hardhat 2
and @nomicfoundation/hardhat-network-helpers.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.node_process import NodeProcess
from tests.clients.test_javascript import SCRIPTS, said_of

HARDHAT = os.environ.get("HARDHAT_PACKAGES")
DEV = ("--rpc-ws-port=0", "--graphql-http-enabled=false", "--page-http-enabled=false", "--logging=WARN")
OTHER = "0x00000000000000000000000000000000000000d0"

VIEM = {
    "setBalance": str(10**20),
    "setCode": "0x6001",
    "setNonce": 7,
    "setStorageAt": f"0x{9:064x}",
    "mine": "5",
    "snapshot and revert": "0",
    "increaseTime": True,
    "setNextBlockTimestamp": "0",
    "setBlockTimestampInterval": "9",
    "setBlockGasLimit": "25000000",
    "setNextBlockBaseFeePerGas": "2000000000",
    "setCoinbase": OTHER,
    "impersonateAccount": "success",
    "automine": [False, 1, 1, 1, 0],
    "setIntervalMining": True,
    "dumpState and loadState": True,
    "sendUnsignedTransaction": "success",
    "setLoggingEnabled": True,
    "reset": "0",
}

HELPERS = {
    "mine": 1000,
    "mine one": 1,
    "mineUpTo": 0,
    "time.increase": 3600,
    "time.increaseTo": 0,
    "time.setNextBlockTimestamp": 0,
    "setBalance": str(10**20),
    "setCode": "0x6001",
    "setNonce": "0x9",
    "setStorageAt and getStorageAt": f"0x{17:064x}",
    "setCoinbase": OTHER,
    "setBlockGasLimit": hex(20_000_000),
    "setNextBlockBaseFeePerGas": hex(2_000_000_000),
    "setPrevRandao": f"0x{42:064x}",
    "impersonateAccount": "0x1",
    "takeSnapshot": [0, 0],
    "loadFixture": [1, 0],
    "dropTransaction": True,
    "reset": 0,
}


def test_viem_test_actions(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--preset=anvil", *DEV, command=("dev",)) as node:
        url = f"http://127.0.0.1:{node.ports['json-rpc']}"
        said = said_of(url, url.replace("http", "ws"), "viem-test-actions.mjs", tmp_path, None)
    assert said == VIEM


@pytest.mark.skipif(HARDHAT is None, reason="HARDHAT_PACKAGES does not name a folder with hardhat 2 and its helpers")
def test_hardhat_network_helpers(tmp_path: Path) -> None:
    assert HARDHAT is not None
    project = tmp_path / "project"
    project.mkdir()
    (project / "node_modules").symlink_to(Path(HARDHAT) / "node_modules")
    (project / "package.json").write_text('{"name": "helpers"}')
    (project / "script.js").write_text((SCRIPTS / "hardhat-helpers.cjs").read_text())
    with NodeProcess(tmp_path / "data", "--preset=hardhat", *DEV, command=("dev",)) as node:
        url = f"http://127.0.0.1:{node.ports['json-rpc']}"
        config = {"solidity": "0.8.28", "networks": {"localhost": {"url": url, "timeout": 60000}}}
        (project / "hardhat.config.js").write_text(f"module.exports = {json.dumps(config)};")
        ran = subprocess.run(
            ["node", "node_modules/hardhat/internal/cli/bootstrap.js", "run", "--no-compile", "script.js"],
            cwd=project,
            env={
                **os.environ,
                "HARDHAT_NETWORK": "localhost",
                "HARDHAT_DISABLE_TELEMETRY_PROMPT": "true",
                "CI": "true",
            },
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    said: dict[str, Any] = dict(json.loads(line[1:]) for line in ran.stdout.splitlines() if line[:1] == "@")
    assert said == HELPERS, ran.stderr[-3000:]
