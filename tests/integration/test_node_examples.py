"""The examples run unchanged against a real node."""

from __future__ import annotations

import fcntl
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ophion.testing.node_process import MINING, NodeProcess

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(command: list[str], folder: Path, **variables: str) -> str:
    ran = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "HARDHAT_DISABLE_TELEMETRY_PROMPT": "true", **variables},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


NPM = ("npm", "ci", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-retry-mintimeout=1000")
NPM_LIMIT_S = 300
"""Time limit of npm. Without the registry, npm retries once and then fails."""


def javascript(name: str) -> Path:
    """Return the folder of an example. Missing packages are installed from the lock file. Skips without Node."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node.js is not installed")
    folder = EXAMPLES / name
    if not has_packages(folder):
        pytest.skip("npm packages cannot be fetched here")
    return folder


@functools.cache
def has_packages(folder: Path) -> bool:
    """Return whether all packages are installed, after one attempt to install them. npm writes its package list last,
    so this list shows a complete installation.
    """
    complete = folder / "node_modules" / ".package-lock.json"
    # several test processes may install the packages at once, so a lock lets only one of them install
    with (folder / "package-lock.json").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(NPM, cwd=folder, capture_output=True, timeout=NPM_LIMIT_S, check=False)
        return complete.exists()


def url(node: NodeProcess) -> str:
    return f"http://127.0.0.1:{node.ports['json-rpc']}"


@pytest.mark.skipif(importlib.util.find_spec("web3") is None, reason="web3.py is not installed (pip install web3)")
def test_the_python_client_deploys_and_uses_a_contract(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *MINING) as node:
        shown = run([sys.executable, "deploy.py", url(node)], EXAMPLES / "python-client")
    assert "counted to 42 by 0x627306090abaB3A6e1400e9345bC60c78a8BEf57" in shown
    assert "count() answers 42" in shown
    assert "events found: 1" in shown
    assert "add(1000) reverts: 0x" in shown


@pytest.mark.parametrize("script", ["with-ethers.mjs", "with-viem.mjs"])
def test_a_javascript_client_deploys_and_uses_a_contract(tmp_path: Path, script: str) -> None:
    folder = javascript("javascript-client")
    with NodeProcess(tmp_path / "data", *MINING) as node:
        shown = run(["node", script, url(node)], folder)
    assert "counted to 42 by 0x" in shown
    assert "count() answers 42" in shown
    assert "events found: 1" in shown
    assert "add(1000) reverts: TooMuch(1000)" in shown


def test_a_viem_test_client_controls_a_development_chain(tmp_path: Path) -> None:
    folder = javascript("javascript-client")
    options = ("--preset=anvil", "--rpc-ws-port=0", "--graphql-http-port=0", "--page-http-port=0")
    with NodeProcess(tmp_path / "data", *options, command=("dev",)) as node:
        shown = run(["node", "cheat-codes.mjs", url(node)], folder)
    assert "mined 1000 blocks, 12 seconds apart" in shown
    assert "impersonated transaction: success" in shown
    assert "back at block 0 of 0, balance 0" in shown


def test_a_pytest_project_tests_a_contract_without_a_node() -> None:
    shown = run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--ophion-gas-file=/dev/null"],
        EXAMPLES / "pytest-project",
    )
    assert "6 passed" in shown


def test_a_hardhat_project_deploys_and_tests_a_contract(tmp_path: Path) -> None:
    folder = javascript("hardhat-project")
    with NodeProcess(tmp_path / "data", *MINING) as node:
        shown = run(["npx", "hardhat", "test"], folder, OPHION_URL=url(node))
    assert "3 passing" in shown
