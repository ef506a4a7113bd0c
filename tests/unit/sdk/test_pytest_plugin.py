"""Runs the pytest plugin in separate sessions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.unit.sdk.contracts import FOLDER

SUITE = """
import pytest

@pytest.fixture(scope="session")
def shared(chain_session, contracts):
    return chain_session.deploy(contracts.Token, "Shared", 1000)

@pytest.mark.parametrize("turn", range(4))
def test_isolation(chain, shared, accounts, turn):
    assert shared.balanceOf(accounts[1]) == 0
    shared.transfer(accounts[1], 5)
    assert shared.balanceOf(accounts[1]) == 5

def test_deploy(deploy, chain):
    token = deploy("Token", "Coin", 7)
    assert token.totalSupply() == 7
    assert chain.block_number == 2

def test_web3(w3, chain):
    pytest.importorskip("web3")
    assert w3.eth.chain_id == chain.chain_id

def test_network(network):
    net = network(validators=4, seed=1)
    net.run(blocks=2)
    assert min(net.heights) >= 2

def test_failing(shared, chain, accounts):
    shared.transfer(accounts[1], 5)
    assert shared.balanceOf(accounts[1]) == 6
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nophion_artifacts = {FOLDER}\nophion_chain = accounts=3\n")
    return tmp_path


def _run(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "ophion.sdk.pytest_plugin", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *options], cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_fixtures_isolate_tests_and_failures_show_the_call_tree(project: Path) -> None:
    done = _run(project)
    assert "1 failed, 7 passed" in done.stdout, done.stdout + done.stderr
    assert "Ophion: last transaction" in done.stdout
    assert "Token.transfer(to=" in done.stdout
    assert "emit Transfer(" in done.stdout


def test_workers_have_chains_of_their_own_and_share_the_gas_report(project: Path) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist runs workers")
    done = _run(project, "-p", "xdist", "-n", "2", "--ophion-gas", "--ophion-coverage", "-k", "not failing")
    assert "7 passed" in done.stdout, done.stdout + done.stderr
    assert "Token.transfer" in done.stdout
    assert "Token.sol:Token" in done.stdout.partition("coverage of contracts")[2]
    assert (project / ".ophion-gas.json").exists()
    again = _run(project, "--ophion-gas", "--ophion-gas-check", "-k", "isolation")
    assert again.returncode == 1
    assert "Token.constructor: " in again.stdout.partition("changes since")[2]


def test_the_module_imports_nothing_of_the_node() -> None:
    code = (
        "import sys, ophion.sdk.pytest_plugin;"
        "print([one for one in sys.modules if one.startswith(('ophion.node', 'ophion.chain', 'ophion._native'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
