"""Ape's test runner with the provider of packaging/ape-ophion, unmodified.

`APE_PYTHON` names a Python with eth-ape and the packages that Ophion depends on (requirements.lock); pip has them. The
tests of the project below then run inside of that process.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

CONFIG = """
name: tokens
ethereum:
  local:
    default_provider: ophion
test:
  number_of_accounts: 5
"""

TESTS = """
import ape
import pytest
from ape.contracts import ContractContainer
from ethpm_types import ContractType
import json, pathlib


def container(name):
    artifact = json.loads((pathlib.Path(__file__).parent / f"{name}.json").read_text())
    return ContractContainer(ContractType(
        abi=artifact["abi"], contractName=name, deploymentBytecode={"bytecode": artifact["bytecode"]}
    ))


@pytest.fixture(scope="module")
def token(accounts):
    return accounts[0].deploy(container("Token"), "Coin", 1000)


def test_transfer(token, accounts):
    receipt = token.transfer(accounts[1], 7, sender=accounts[0])
    assert token.balanceOf(accounts[1]) == 7
    assert not receipt.failed
    (event,) = list(receipt.decode_logs(token.Transfer))
    assert event.value == 7


def test_each_test_has_a_fresh_state(token, accounts):
    assert token.balanceOf(accounts[1]) == 0


def test_revert(token, accounts):
    with ape.reverts():
        token.transfer(accounts[0], 7, sender=accounts[3])


def test_time_and_mining(chain):
    before = chain.blocks.head
    chain.pending_timestamp += 3600
    chain.mine(3)
    assert chain.blocks.head.number == before.number + 3
    assert chain.blocks.head.timestamp >= before.timestamp + 3600


def test_snapshots(chain, accounts):
    saved = chain.snapshot()
    accounts[0].transfer(accounts[4], 10**18)
    balance = accounts[4].balance
    chain.restore(saved)
    assert accounts[4].balance == balance - 10**18
    with pytest.raises(ape.exceptions.UnknownSnapshotError):
        chain.restore(saved + 100)


def test_cheat_codes(chain, accounts, token):
    whale = accounts["0x00000000000000000000000000000000000000d0"]
    chain.set_balance(whale.address, 10**20)
    whale.transfer(accounts[1], 10**18)
    assert chain.provider.get_code(token.address)
    chain.provider.set_code(whale.address, "0x6001")
    assert chain.provider.get_code(whale.address) == bytes.fromhex("6001")


def test_call_tree(token, accounts):
    receipt = token.transfer(accounts[1], 7, sender=accounts[0])
    tree = receipt.trace.enriched_calltree
    assert tree["contract_id"] == "Token"
    assert tree["method_id"] == "transfer"


def test_other_chain_id(networks):
    with networks.ethereum.local.use_provider("ophion", provider_settings={"chain_id": 99}) as provider:
        assert provider.chain_id == 99
"""


def test_the_tests_of_a_project(tmp_path: Path) -> None:
    python = os.environ.get("APE_PYTHON")
    if python is None:
        pytest.skip("Ape is not here: set APE_PYTHON to a Python with eth-ape")
    plugin = ROOT / "packaging" / "ape-ophion"
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*install, "--target", str(tmp_path / "plugin"), str(plugin)], check=True, timeout=120)
    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)
    (project / "ape-config.yaml").write_text(CONFIG)
    (project / "tests" / "test_token.py").write_text(TESTS)
    artifact = json.loads((ROOT / "tests/data/contracts/Token.json").read_text())
    (project / "tests" / "Token.json").write_text(json.dumps(artifact))
    paths = os.pathsep.join((str(tmp_path / "plugin"), str(ROOT / "src")))
    environment = {**os.environ, "PYTHONPATH": paths, "HOME": str(tmp_path)}
    run = subprocess.run(
        [str(Path(python).parent / "ape"), "test", "-q", "--network", "ethereum:local:ophion"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "8 passed" in run.stdout
