"""Positions of bytecode lead to lines of source."""

from __future__ import annotations

from ophion.sdk.execution_log.source_map import SourceFile, location_at

CODE = bytes.fromhex("6001600055fe")
"""PUSH1 1, PUSH1 0, SSTORE, INVALID."""
MAP = "0:40:0:-:0;7:5;;21:3:1:i"


def test_empty_fields_repeat_the_entry_before() -> None:
    assert location_at(MAP, CODE, 0) == (0, 0)
    assert location_at(MAP, CODE, 2) == (7, 0)
    assert location_at(MAP, CODE, 4) == (7, 0)
    assert location_at(MAP, CODE, 5) == (21, 1)


def test_a_position_without_source_has_no_location() -> None:
    assert location_at(MAP, CODE, 1) is None, "inside of an instruction"
    assert location_at(MAP, CODE, 99) is None, "after the code"
    assert location_at("0:1:-1:-", CODE, 0) is None, "code that the compiler has added"
    assert location_at("0:1:0:-", CODE, 5) is None, "the map is too short"


def test_lines_are_counted_from_one_and_offsets_in_bytes() -> None:
    file = SourceFile("a.sol", "// é\ncontract A {\n    revert();\n}".encode())
    assert (file.line_at(0).line, file.line_at(0).text) == (1, "// é")
    assert str(file.line_at(6)) == "a.sol:2"
    assert file.line_at(25).text == "revert();"
    assert file.line_at(10_000).line == 4
