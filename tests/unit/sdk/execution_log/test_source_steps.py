"""Source steps: visits to lines, calls, precompiled contracts, and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ophion.abi.interface import Abi
from ophion.sdk.execution_log import source_steps as module
from ophion.sdk.execution_log.contract_index import CompiledContract
from ophion.sdk.execution_log.source_steps import source_steps
from ophion.sdk.source_map import SourceFile

SOURCE = "contract A {\n  function f() {\n    x = 1;\n    g();\n    y = 2;\n  }\n}\n"
DECLARATION = SOURCE[SOURCE.index("function") : SOURCE.index("  }") + 3]
LINES = {number: SOURCE.index(text) for number, text in ((2, "function"), (3, "x = 1"), (4, "g()"), (5, "y = 2"))}


def contract(name: str, *lines: int) -> CompiledContract:
    """Return a contract whose instruction at each program counter belongs to one of these lines."""
    file = SourceFile(f"{name}\u202e.sol", SOURCE.encode())
    return CompiledContract(
        name=name,
        abi=Abi([]),
        creation=b"",
        runtime=bytes(len(lines)),
        immutables=(),
        source_map=";".join(f"{LINES[line]}:{len(DECLARATION) if line == 2 else 3}:0:-" for line in lines),
        sources=lambda number: file if number == 0 else None,
    )


def row(pc: int, depth: int = 1, op: str = "STOP") -> dict[str, Any]:
    return {"pc": pc, "op": op, "gas": 100 - pc, "depth": depth}


OUTER, INNER = contract("Outer", 2, 3, 3, 4, 4, 5), contract("Inner", 3, 5)


def contract_of(frame: Mapping[str, Any]) -> CompiledContract | None:
    return {"0x01": OUTER, "0x02": INNER}.get(str(frame.get("to")))


def visits(rows: list[dict[str, Any]], frame: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    found = source_steps(rows, frame, contract_of)
    return [(step["contract"], step["line"], step["position"]) for step in found["steps"]]


def test_a_step_is_a_visit_to_a_line() -> None:
    rows = [row(0), row(1), row(2), row(3), row(4), row(5), row(1)]
    # line 2 is the declaration of the function
    assert visits(rows, {"to": "0x01"}) == [("Outer", 3, 1), ("Outer", 4, 3), ("Outer", 5, 5), ("Outer", 3, 6)]


def test_calls_enter_their_contracts() -> None:
    frame = {"to": "0x01", "calls": [{"to": "0x04"}, {"to": "0x02"}, {"to": "0x02", "type": "CREATE"}]}
    rows = [
        row(1), row(3, op="STATICCALL"), row(4, op="CALL"),  # the first call reaches a precompiled contract
        row(0, 2), row(1, 2), row(5, op="CREATE"), row(0, 2), row(1),
    ]  # fmt: skip
    assert visits(rows, frame) == [
        ("Outer", 3, 0), ("Outer", 4, 1), ("Inner", 3, 3), ("Inner", 5, 4), ("Outer", 5, 5), ("Outer", 3, 7),
    ]  # fmt: skip


def test_a_failed_call_has_no_frame() -> None:
    frame = {"to": "0x01", "calls": [{"to": "0x02"}]}
    rows = [{**row(3, op="CALL"), "error": "out of gas"}, row(4, op="CALL"), row(0, 2)]
    assert visits(rows, frame)[-1] == ("Inner", 3, 2)


def test_files_are_listed_once_and_escaped() -> None:
    found = source_steps([row(1), row(3), row(5)], {"to": "0x01"}, contract_of)
    assert found["files"] == [{"path": "Outer\\u202e.sol", "text": SOURCE}]
    assert [step["file"] for step in found["steps"]] == [0, 0, 0]


def test_unknown_contracts_have_no_steps() -> None:
    assert source_steps([row(0), row(1)], {"to": "0x09"}, contract_of)["steps"] == []


def test_steps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STEPS", 2)
    found = source_steps([row(1), row(3), row(5)], {"to": "0x01"}, contract_of)
    assert len(found["steps"]) == 2
    assert found["isTruncated"]
