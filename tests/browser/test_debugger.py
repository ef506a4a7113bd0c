"""The transaction view of a development node with artifacts: call tree, source steps, values, hostile names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.native.crypto import keccak256
from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.browser.chromium import Browser
from tests.browser.test_hostile_data import HAS_MARKUP, MARKUP
from tests.browser.test_page import FREE, base, is_calm, send

SOURCE = """contract Ledger {
    function put(uint amount) external {
        total = 5;
        note = 42;
        emit Put(note);
        require(amount > 0);
    }
}
"""
ABI = [
    {"type": "function", "name": "put", "inputs": [{"name": "amount", "type": "uint256"}], "outputs": []},
    {"type": "event", "name": "Put", "inputs": [{"name": "note", "type": "uint256"}]},
    {"type": "error", "name": "Nothing", "inputs": [{"name": "given", "type": "uint256"}]},
]
INPUT = "0x" + keccak256(b"put(uint256)")[:4].hex() + f"{7:064x}"
PUT, NOTHING = keccak256(b"Put(uint256)"), keccak256(b"Nothing(uint256)")[:4]
INSTRUCTIONS = [
    ("total", "6005"), ("total", "6000"), ("total", "55"),
    ("note", "602a"), ("note", "6000"), ("note", "52"),
    ("emit", "7f" + PUT.hex()), ("emit", "6020"), ("emit", "6000"), ("emit", "a1"),
    ("require", "63" + NOTHING.hex()), ("require", "60e0"), ("require", "1b"), ("require", "6000"), ("require", "52"),
    ("require", "6024"), ("require", "6000"), ("require", "fd"),
]  # fmt: skip
RUNTIME = bytes.fromhex("".join(code for _, code in INSTRUCTIONS))


def artifact(name: str, path: str, source: str, code: bytes) -> dict[str, Any]:
    """Return build information with one contract, in the form of Hardhat."""
    source_map = ";".join(f"{source.index(text)}:{len(text)}:0:-" for text, _ in INSTRUCTIONS)
    deployed = {"object": code.hex(), "sourceMap": source_map}
    return {
        "input": {"sources": {path: {"content": source}}},
        "output": {
            "sources": {path: {"id": 0}},
            "contracts": {path: {name: {"abi": ABI, "evm": {"deployedBytecode": deployed}}}},
        },
    }


HOSTILE = RUNTIME.replace(bytes.fromhex("6005"), bytes.fromhex("6006"))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    path: Path = tmp_path_factory.mktemp("debugger")
    (path / "artifacts").mkdir()
    (path / "artifacts" / "one.json").write_text(json.dumps(artifact("Ledger", "src/ledger.sol", SOURCE, RUNTIME)))
    source = SOURCE.replace("total = 5;", f"total = 5; // {MARKUP}")
    (path / "artifacts" / "two.json").write_text(json.dumps(artifact(MARKUP, MARKUP, source, HOSTILE)))
    given = (*FREE, f"--artifacts={path / 'artifacts'}")
    with NodeProcess(path / "data", *given, command=("dev",)) as started:
        yield started


@pytest.fixture
def page(node: NodeProcess, browser: Browser) -> Iterator[Browser]:
    browser.look()
    browser.open(base(node), "document.getElementById('live')?.dataset.state === 'live'")
    yield browser
    assert browser.value(HAS_MARKUP) is False
    is_calm(browser, node)


def deployed(node: NodeProcess, code: bytes) -> str:
    create = bytes((0x60, len(code), 0x80, 0x60, 11, 0x60, 0, 0x39, 0x60, 0, 0xF3)) + code
    key = DEV_KEYS[0]
    nonce = int(node.rpc("eth_getTransactionCount", "0x" + key.address.hex(), "pending"), 16)
    sent = node.send(legacy_transaction(key, nonce, to=None, data=create, gas=3_000_000))
    address: str = node.receipt(sent)["contractAddress"]
    return address


def test_the_call_tree_has_names_values_events_and_lines(page: Browser, node: NodeProcess) -> None:
    page.go(f"#/tx/{send(node, deployed(node, RUNTIME), INPUT)}")
    text = page.reads("Ledger.put(amount=7)", "Nothing(given=")
    assert "src/ledger.sol:6" in text
    assert "require(amount > 0);" in text


def test_stepping_shows_lines_and_values(page: Browser, node: NodeProcess) -> None:
    page.go(f"#/tx/{send(node, deployed(node, RUNTIME), INPUT)}")
    page.click("details.source > summary")
    page.reads("Step 1 of 4", "src/ledger.sol:3", "The stack is empty.", "No slot was accessed yet.")
    assert page.text("li.current") == "        total = 5;"
    page.click(".steps button:nth-child(3)")
    page.reads("Step 2 of 4", "src/ledger.sol:4", "0x5")
    page.click(".steps button:nth-child(3)")
    page.reads("Step 3 of 4", f"0x{42:064x}")
    page.click(".steps button:nth-child(6)")
    page.reads("Step 4 of 4")
    page.click(".steps button:nth-child(1)")
    page.reads("Step 1 of 4", "The memory is empty.")


def test_names_and_sources_of_artifacts_are_text(page: Browser, node: NodeProcess) -> None:
    page.go(f"#/tx/{send(node, deployed(node, HOSTILE), INPUT)}")
    page.reads("<img src=x onerror=", ".put(amount=7)")
    page.click("details.source > summary")
    page.reads("Step 1 of 4", "total = 5; // <img src=x onerror=")
    assert page.value(HAS_MARKUP) is False
