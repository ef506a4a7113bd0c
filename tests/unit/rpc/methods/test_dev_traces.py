"""Call tree, source steps and values of steps, over JSON-RPC."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ophion.testing.node_process import NodeProcess, RpcFailure
from tests.browser.test_debugger import INPUT, RUNTIME, SOURCE, artifact, deployed
from tests.browser.test_page import send

QUIET = ("--rpc-ws-port=0", "--graphql-http-enabled=false", "--page-http-enabled=false", "--logging=WARN")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    path = tmp_path_factory.mktemp("traces")
    (path / "artifacts").mkdir()
    (path / "artifacts" / "one.json").write_text(json.dumps(artifact("Ledger", "src/ledger.sol", SOURCE, RUNTIME)))
    with NodeProcess(path / "data", *QUIET, f"--artifacts={path / 'artifacts'}", command=("dev",)) as started:
        yield started


@pytest.fixture(scope="module")
def failed(node: NodeProcess) -> str:
    return send(node, deployed(node, RUNTIME), INPUT)


def test_the_tree_has_names_and_the_line_of_the_failure(node: NodeProcess, failed: str) -> None:
    tree = node.rpc("debug_callTree", failed)
    assert tree["isKnown"]
    assert (tree["name"], tree["arguments"]) == ("Ledger.put(amount=7)", [["amount", "7"]])
    assert tree["reason"].startswith("Nothing(given=")
    assert tree["source"] == {"path": "src/ledger.sol", "line": 6, "text": "require(amount > 0);"}


def test_steps_are_lines_in_order(node: NodeProcess, failed: str) -> None:
    found = node.rpc("debug_sourceSteps", failed)
    assert [step["line"] for step in found["steps"]] == [3, 4, 5, 6]
    assert found["files"] == [{"path": "src/ledger.sol", "text": SOURCE}]


def test_values_are_those_before_the_instruction(node: NodeProcess, failed: str) -> None:
    first, second, third, _ = (step["position"] for step in node.rpc("debug_sourceSteps", failed)["steps"])
    assert node.rpc("debug_stepValues", failed, first)["storage"] == {}
    before_write = node.rpc("debug_stepValues", failed, first + 2)
    assert (before_write["op"], before_write["stack"], before_write["storage"]) == ("SSTORE", ["0x5", "0x0"], {})
    assert node.rpc("debug_stepValues", failed, second)["storage"] == {f"0x{0:064x}": f"0x{5:064x}"}
    assert node.rpc("debug_stepValues", failed, third)["memory"] == [f"0x{42:064x}"]
    assert node.rpc("debug_stepValues", failed, 10_000) is None


def test_an_unknown_transaction_is_null(node: NodeProcess) -> None:
    unknown = "0x" + "11" * 32
    assert [node.rpc(name, unknown) for name in ("debug_callTree", "debug_sourceSteps")] == [None, None]
    assert node.rpc("debug_stepValues", unknown, 0) is None


@pytest.mark.parametrize("gas", [60_000, 29_000_000])
def test_calls_that_nest_too_deeply_are_an_error(node: NodeProcess, gas: int) -> None:
    """A contract that calls itself until its gas is used up: 250 and 512 levels are limits of JSON libraries."""
    calls_itself = bytes.fromhex("6000600060006000600030" + "5af100")
    request = {"from": node.rpc("eth_accounts")[0], "to": deployed(node, calls_itself), "gas": hex(gas)}
    sent = node.rpc("eth_sendTransaction", request)
    node.receipt(sent)
    for name in ("debug_callTree", "debug_sourceSteps"):
        with pytest.raises(RpcFailure, match="nest deeper than 100"):
            node.rpc(name, sent)
    assert node.rpc("debug_stepValues", sent, 0)["op"] == "PUSH1"
    assert "Traceback" not in node.output()
