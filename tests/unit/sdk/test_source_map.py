"""Source maps of Solidity and Vyper."""

from __future__ import annotations

from ophion.sdk.source_map import Fragment, SourceMap, decode, instructions


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
