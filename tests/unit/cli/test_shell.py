"""Tests `ophion shell`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ophion import Chain
from tests.conftest import ROOT
from tests.unit.sdk.contracts import FOLDER, TOKEN


def _run(*words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ophion", "shell", *words],
        input=typed,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_runs_code_on_a_new_chain_with_artifacts() -> None:
    code = 'print(chain.deploy(contracts.Token, "Coin", 5).totalSupply(), len(accounts))'
    done = _run(f"--abi={FOLDER}", f"--command={code}")
    assert (done.returncode, done.stdout.strip()) == (0, "5 10"), done.stderr


def test_opens_a_database_at_a_block(tmp_path: Path) -> None:
    with Chain(tmp_path / "data") as chain:
        address = chain.deploy(TOKEN, "Coin", 5).address
        chain.mine(3)
    code = f"print(chain.block_number, len(chain.code('{address}')) > 0)"
    assert _run(f"--data-path={tmp_path / 'data'}", f"--command={code}").stdout.strip() == "4 True"
    assert _run(f"--data-path={tmp_path / 'data'}", "--at=0", f"--command={code}").stdout.strip() == "0 False"


def test_wrong_options_are_errors(tmp_path: Path) -> None:
    assert "needs --data-path" in _run("--at=5").stderr
    assert "There is no chain" in _run(f"--data-path={tmp_path}").stderr
