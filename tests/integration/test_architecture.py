"""docs/architecture.md is correct: its files exist, and its flows match a real node."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.conftest import DATA, ROOT
from tests.integration.command import ophion
from tests.integration.test_rpc_websocket import WebSocket

PAGE = (ROOT / "docs" / "architecture.md").read_text()
SOURCES = ROOT / "src" / "ophion"
RECORDER = ROOT / "tests" / "integration" / "recorder"

Flow = list[tuple[str, str]]


def flows() -> list[Flow]:
    """Return the flows that docs/architecture.md describes: a block, a transaction, and three calls."""
    blocks = re.findall(r"^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    steps = [re.findall(r"^(\S+\.py) {2,}(\w+)(?: {2,}|$)", block, re.MULTILINE) for block in blocks]
    return [flow for flow in steps if flow]


BLOCK, TRANSACTION, USUAL_CALL, QUICK_CALL, CALL = flows()
NAMES = ["block", "transaction", "usual", "quick", "call"]


def missing(wanted: Flow, recorded: Flow) -> list[tuple[str, str]]:
    """Return the steps of a flow that are missing or out of order."""
    rest = iter(recorded)
    return [step for step in wanted if ("native" if step[0].startswith("native/") else step[0], step[1]) not in rest]


def recorded_flows(path: Path) -> list[Flow]:
    return [[(file, function) for file, function in flow] for flow in json.loads(path.read_text())]


def test_every_file_and_folder_that_is_named_exists() -> None:
    files = set(re.findall(r"(?<![\w/.-])[\w*-]+(?:/[\w*-]+)*\.(?:pyi?|rs|toml|md)\b", PAGE))
    folders = set(re.findall(r"`([\w/]+/)`", PAGE))
    places = (ROOT, SOURCES, ROOT / "docs")
    absent = [
        name
        for name in sorted(files | folders)
        if not any(any(place.glob(name)) for place in places)
        and not (name.endswith((".rs", "/")) and any((ROOT / "native").glob(f"**/src/**/{name}")))
    ]
    assert absent == []


@pytest.mark.parametrize("flow", [BLOCK, TRANSACTION, USUAL_CALL, QUICK_CALL, CALL], ids=NAMES)
def test_every_function_of_a_flow_is_in_its_file(flow: Flow) -> None:
    for path, function in flow:
        assert (SOURCES / path).exists()
        # functions of the Rust extension are declared in the type stub `_native.pyi`
        text = (SOURCES / ("_native.pyi" if path.startswith("native/") else path)).read_text()
        assert re.search(rf"def {function}\b", text), f"{path} has no {function}"


def test_a_block_follows_the_documented_flow(tmp_path: Path) -> None:
    flows_file = tmp_path / "flows.json"
    ophion(
        "blocks",
        "import",
        f"--from={DATA / 'original-chain/test.blocks'}",
        f"--genesis-file={DATA / 'original-chain/genesis.json'}",
        f"--data-path={tmp_path / 'data'}",
        env={"FLOWS": str(flows_file), "PYTHONPATH": os.pathsep.join((str(RECORDER), str(ROOT / "src")))},
    ).succeeded()
    (recorded,) = recorded_flows(flows_file)
    assert missing(BLOCK, recorded) == []


def test_a_transaction_and_calls_follow_the_documented_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flows_file = tmp_path / "flows.json"
    monkeypatch.setenv("FLOWS", str(flows_file))
    monkeypatch.setenv("PYTHONPATH", str(RECORDER))
    with NodeProcess(tmp_path / "node", *MINING, "--rpc-ws-enabled", "--rpc-ws-port=0") as node:
        subscriber = WebSocket(node)
        subscriber.ask("eth_subscribe", "newHeads")
        node.send(legacy_transaction(DEV_KEYS[0], 0))
        subscriber.wait(1)
        to_nobody = {"to": "0x" + "11" * 20, "data": "0x0102"}
        assert node.rpc("eth_call", to_nobody, "latest") == "0x"
        assert node.rpc("eth_call", to_nobody | {"data": "0x0304"}, "0x0") == "0x", "of which nothing is known yet"
        assert node.rpc("eth_call", to_nobody, "latest") == "0x"
        assert node.stop() == 0
    recorded = recorded_flows(flows_file)
    (sent,) = (flow for flow in recorded if ("rpc/dispatch/dispatcher.py", "_send") in flow)
    quick, later = (flow for flow in recorded if ("rpc/methods/eth_transactions.py", "eth_call") in flow)
    assert missing(TRANSACTION, sent) == []
    without_handler = [flow for flow in recorded if ("rpc/schema/compiler.py", "invoke") not in flow]
    assert any(missing(USUAL_CALL, flow) == [] for flow in without_handler)
    assert missing(QUICK_CALL, quick) == []
    assert missing(CALL, later) == []
