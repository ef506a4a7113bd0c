"""Runs the same scripts against Anvil and against `ophion dev --preset=anvil`, and compares the observations.

`ANVIL` names Anvil's binary. Without it, the scripts run only against Ophion.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from tests.clients.dev_scripts import SCRIPTS, Node

ANVIL = os.environ.get("ANVIL")
DEVIATIONS: dict[str, str] = {}
"""Scripts whose observations differ, with the reason."""


@contextmanager
def anvil() -> Iterator[Node]:
    assert ANVIL is not None
    port = free_ports(1)[0]
    process = subprocess.Popen([ANVIL, "--port", str(port), "--silent"])
    node = Node(f"http://127.0.0.1:{port}")
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                node.number()
                break
            except urllib.error.URLError:
                assert time.monotonic() < deadline, "Anvil did not start"
                time.sleep(0.05)
        yield node
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def ophion(data: Path, *options: str) -> Iterator[Node]:
    given = ("--preset=anvil", "--rpc-ws-port=0", "--graphql-http-enabled=false", "--page-http-enabled=false")
    with NodeProcess(data, *given, "--logging=WARN", *options, command=("dev",)) as process:
        yield Node(f"http://127.0.0.1:{process.ports['json-rpc']}")


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_runs(name: str, tmp_path: Path) -> None:
    with ophion(tmp_path / "data") as node:
        SCRIPTS[name](node)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.skipif(ANVIL is None, reason="ANVIL does not name Anvil's binary")
def test_observations_agree(name: str, tmp_path: Path) -> None:
    with anvil() as node:
        expected = SCRIPTS[name](node)
    with ophion(tmp_path / "data") as node:
        observed = SCRIPTS[name](node)
    if name in DEVIATIONS:
        assert observed != expected, f"{name} does not deviate any more: take it off the list"
        return
    assert json.dumps(observed) == json.dumps(expected)
