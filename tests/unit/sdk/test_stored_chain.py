"""Tests branches of a database to which another process writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ophion import Chain, ChainError
from ophion.abi.artifact import Artifact
from ophion.errors import StorageError
from tests.conftest import ROOT
from tests.unit.sdk.contracts import TOKEN

WRITER = """
import sys
from ophion import Chain
chain = Chain(sys.argv[1])
token = chain.deploy(sys.argv[2], "Coin", 1000)
print(token.address, flush=True)
for line in sys.stdin:
    token.transfer(chain.accounts[1], 5)
    print(chain.block_number, flush=True)
chain.close()
"""


def test_branches_of_a_database_in_use(tmp_path: Path) -> None:
    data = tmp_path / "data"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(data), str(TOKEN)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    try:
        address = writer.stdout.readline().strip()
        artifact = Artifact.of(TOKEN)
        branch = Chain.read(data)
        token = branch.contract(address, artifact)
        assert token.totalSupply() == 1000
        token.transfer(branch.accounts[1], 700)
        for number in range(3):
            writer.stdin.write("next\n")
            writer.stdin.flush()
            assert writer.stdout.readline().strip() == str(number + 2)
        assert token.balanceOf(branch.accounts[1]) == 700
        assert branch.fork_at(1).contract(address, artifact).balanceOf(branch.accounts[1]) == 0
        assert branch.fork_at().contract(address, artifact).balanceOf(branch.accounts[1]) == 700
        with pytest.raises(ChainError, match="There is no block 9"):
            branch.fork_at(9)
    finally:
        writer.stdin.close()
        writer.wait(20)
        writer.stdout.close()


def test_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="There is no chain"):
        Chain.read(tmp_path)
