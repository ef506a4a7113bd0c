"""Runs the cases of the common JSON-RPC standard (execution-apis) on its chain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.node.config import NodeConfig
from tests.conformance.comparison import answer_differences, shape_differences
from tests.conftest import shared_files, shared_path
from tests.unit.rpc.interface import Interface, import_chain, open_interface

NOT_BUILT = ("debug_", "eth_simulateV1", "testing_")
"""Methods of later versions (tracing, simulation), and methods that the public set calls optional."""

DEVIATIONS: dict[str, str] = {}
"""Cases whose answers differ intentionally, with the line of the specification that decides."""

CASES = [case for case in shared_files("fixtures/rpc-standard", "*/*.io") if not case.parent.name.startswith(NOT_BUILT)]


@pytest.fixture(scope="module")
def interface(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interface]:
    path = tmp_path_factory.mktemp("standard")
    folder = shared_path("fixtures", "rpc-standard")
    genesis = import_chain(path, folder / "genesis.json", folder / "chain.rlp")
    with open_interface(path, genesis, NodeConfig()) as opened:
        yield opened


def exchanges(text: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return requests (>>) and their answers (<<)."""
    lines = [line for line in text.splitlines() if line[:2] in (">>", "<<")]
    return [(json.loads(ask[2:]), json.loads(answer[2:])) for ask, answer in zip(lines[::2], lines[1::2], strict=True)]


@pytest.mark.skipif(not CASES, reason="public test data ../shared/fixtures/rpc-standard is not here")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.stem}")
def test_case(interface: Interface, case: Path) -> None:
    text = case.read_text()
    found = []
    for request, expected in exchanges(text):
        got = interface.message(json.dumps(request).encode())
        compare = shape_differences if "speconly" in text else answer_differences
        found += compare(expected, got)
    reason = DEVIATIONS.get(f"{case.parent.name}/{case.stem}")
    if reason is None:
        assert found == []
    else:
        assert found, f"passes, though it is listed: {reason}"
