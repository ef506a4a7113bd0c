"""The examples run as they stand, against a real node."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from ophion.testing.process import MINING, NodeProcess

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.skipif(importlib.util.find_spec("web3") is None, reason="web3.py is not installed (pip install web3)")
def test_the_python_client_deploys_and_uses_a_contract(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *MINING) as node:
        ran = subprocess.run(
            [
                sys.executable,
                str(EXAMPLES / "python-client" / "deploy.py"),
                f"http://127.0.0.1:{node.ports['json-rpc']}",
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "counted to 42 by 0x627306090abaB3A6e1400e9345bC60c78a8BEf57" in ran.stdout
    assert "count() answers 42" in ran.stdout
    assert "events found: 1" in ran.stdout
    assert "add(1000) reverts: 0x" in ran.stdout
