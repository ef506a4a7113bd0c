"""Runs public cases of debug_* (Pantheon's and the standard's) and of eth_simulateV1, each on its own chain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.node.config import NodeConfig
from tests.conformance.comparison import answer_differences, shape_differences
from tests.conformance.test_standard_rpc import exchanges
from tests.conftest import DATA, shared_files, shared_path
from tests.unit.rpc.interface import Interface, import_chain, open_interface

DECIMAL = "json-rpc.md 3.2: block numbers may be decimal; ../shared/fixtures/README.md"
STRUCT_LOGS = "json-rpc.md 9, lines 19 and 20: struct logs in the original's form"
NULL = "json-rpc.md 3.3 and 5.9: null for a block that is not there and for genesis"
DEVIATIONS = {
    "debug_getRawHeader/get-invalid-number": DECIMAL,
    "debug_traceBlockByNumber/trace-block-invalid-number": DECIMAL,
    "debug_traceBlockByHash/trace-block-not-found": NULL,
    "debug_traceBlockByNumber/trace-genesis": NULL,
    "debug_traceBlockByHash/trace-block-with-transactions": "",
    "debug_traceBlockByNumber/trace-block-return-data-behavior": "",
    "debug_traceBlockByNumber/trace-block-storage-encoding": "",
}
"""Cases whose answers differ intentionally, with the line of the specification that decides. Cases without a line are
compared by shape.
"""

ORIGINAL = shared_files("fixtures/original/jsonrpc/debug")
STANDARD = [
    case
    for case in shared_files("fixtures/rpc-standard", "*/*.io")
    if case.parent.name.startswith(("debug_", "eth_simulateV1"))
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interface]:
    path = tmp_path_factory.mktemp("original-tracing")
    genesis = import_chain(path, DATA / "original-chain/genesis.json", DATA / "original-chain/test.blocks")
    with open_interface(path, genesis, NodeConfig()) as opened:
        yield opened


@pytest.fixture(scope="module")
def standard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interface]:
    path = tmp_path_factory.mktemp("standard-tracing")
    folder = shared_path("fixtures", "rpc-standard")
    genesis = import_chain(path, folder / "genesis.json", folder / "chain.rlp")
    with open_interface(path, genesis, NodeConfig()) as opened:
        yield opened


@pytest.mark.skipif(not ORIGINAL, reason="public test data ../shared/fixtures/original/jsonrpc is not here")
@pytest.mark.parametrize("case", ORIGINAL, ids=lambda case: case.stem)
def test_case_of_pantheon(original: Interface, case: Path) -> None:
    content = json.loads(case.read_text())
    got = original.message(json.dumps(content["request"]).encode())
    assert answer_differences(content["response"], got, lenient=True) == []


@pytest.mark.skipif(not STANDARD, reason="public test data ../shared/fixtures/rpc-standard is not here")
@pytest.mark.parametrize("case", STANDARD, ids=lambda case: f"{case.parent.name}/{case.stem}")
def test_case_of_the_standard(standard: Interface, case: Path) -> None:
    text = case.read_text()
    compare = shape_differences if "speconly" in text else answer_differences
    found = []
    for request, expected in exchanges(text):
        found += compare(expected, standard.message(json.dumps(request).encode()))
    if DEVIATIONS.get(f"{case.parent.name}/{case.stem}"):
        assert found, "passes, though it is listed"
    else:
        assert found == []
