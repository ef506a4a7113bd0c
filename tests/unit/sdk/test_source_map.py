"""Tests source maps of Solidity and Vyper."""

from __future__ import annotations

from ophion.sdk.source_map import Fragment, SourceFile, SourceMap, decode, instructions, location_at

CODE = bytes.fromhex("6001600055fe")
"""Code with four instructions: PUSH1 1, PUSH1 0, SSTORE, INVALID."""
MAP = "0:40:0:-:0;7:5;;21:3:1:i"


def test_empty_fields_repeat_the_one_before() -> None:
    assert decode("1:2:0:-;;3::1;:9") == [Fragment(1, 2, 0), Fragment(1, 2, 0), Fragment(3, 2, 1), Fragment(3, 9, 1)]


def test_push_data_is_no_instruction() -> None:
    assert instructions(bytes.fromhex("6001610203575b")) == [(0, 0x60), (2, 0x61), (5, 0x57), (6, 0x5B)]


def test_lines_and_branches() -> None:
    source = "contract A {\n  function f() {\n    if (x) {\n      y = 1;\n    }\n  }\n}\n"
    condition, statement = source.index("if"), source.index("y = 1")
    found = SourceMap(bytes.fromhex("60015700"), f"{condition}:26:0;;{statement}:5:0", source)
    assert found.branches == {2: 3}
    assert found.lines == {0: 3, 2: 3, 3: 4}
    whole = SourceMap(bytes.fromhex("6001"), f"0:{len(source)}:0", source)
    assert whole.lines == {}


def test_a_location_repeats_empty_fields() -> None:
    assert location_at(MAP, CODE, 0) == (0, 0)
    assert location_at(MAP, CODE, 2) == (7, 0)
    assert location_at(MAP, CODE, 4) == (7, 0)
    assert location_at(MAP, CODE, 5) == (21, 1)


def test_a_position_without_source_has_no_location() -> None:
    assert location_at(MAP, CODE, 1) is None, "inside of an instruction"
    assert location_at(MAP, CODE, 99) is None, "after the code"
    assert location_at("0:1:-1:-", CODE, 0) is None, "code that the compiler has added"
    assert location_at("0:1:0:-", CODE, 5) is None, "the map is too short"
    assert location_at("x:1:0:-", CODE, 0) is None, "not a number"


def test_lines_are_counted_from_one_and_offsets_in_bytes() -> None:
    file = SourceFile("a.sol", "// é\ncontract A {\n    revert();\n}".encode())
    assert (file.line_at(0).line, file.line_at(0).text) == (1, "// é")
    assert str(file.line_at(6)) == "a.sol:2"
    assert file.line_at(25).text == "revert();"
    assert file.line_at(10_000).line == 4
