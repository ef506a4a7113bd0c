"""ABI files of several compilers, and decoded values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ophion.data.abi import AbiEntry, CannotDecode, decode_values, load_abis
from ophion.errors import CommandError

EVENT = {"type": "event", "name": "Moved", "inputs": [{"name": "a", "type": "uint8", "indexed": True}]}
FUNCTION = {
    "type": "function",
    "name": "f",
    "inputs": [
        {"name": "a", "type": "int16"},
        {"name": "b", "type": "string"},
        {"name": "c", "type": "tuple[]", "components": [{"type": "address"}, {"type": "bytes"}]},
        {"name": "d", "type": "bytes4[2]"},
        {"name": "e", "type": "bool"},
    ],
}


def one(tmp_path: Path, content: object) -> list[AbiEntry]:
    (tmp_path / "abi.json").write_text(json.dumps(content))
    return load_abis(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        [EVENT],
        {"abi": [EVENT], "bytecode": "0x"},
        {"contracts": {"A.sol": {"A": {"abi": [EVENT]}}}},
        {"contracts": {"A.sol:A": {"abi": [EVENT]}, "A.sol:B": {"abi": json.dumps([EVENT])}}},
    ],
)
def test_files_of_every_compiler_are_read(tmp_path: Path, content: object) -> None:
    (entry,) = one(tmp_path, content)
    assert (entry.signature, entry.parameters[0].is_indexed) == ("Moved(uint8)", True)


@pytest.mark.parametrize(
    "content", [3, [3], [{"type": "event", "name": "A", "inputs": [{"type": "word"}]}], {"abi": 1}]
)
def test_other_files_are_refused_by_name(tmp_path: Path, content: object) -> None:
    with pytest.raises(CommandError, match="abi.json is not an ABI"):
        one(tmp_path, content)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no ABI file"):
        load_abis(tmp_path)


def word(value: int) -> bytes:
    return (value % 2**256).to_bytes(32, "big")


def test_nested_values_are_decoded(tmp_path: Path) -> None:
    (entry,) = one(tmp_path, [FUNCTION])
    assert entry.signature == "f(int16,string,(address,bytes)[],bytes4[2],bool)"
    types = [parameter.type for parameter in entry.parameters]
    text = word(5) + b"hello".ljust(32, b"\0")
    pair = word(7) + word(64) + word(2) + b"\1\2".ljust(32, b"\0")
    head = word(-3) + word(192) + word(192 + len(text))
    head += b"abcd".ljust(32, b"\0") + b"efgh".ljust(32, b"\0") + word(1)
    data = head + text + word(1) + word(32) + pair
    expected = [-3, "hello", [[b"\7".rjust(20, b"\0"), b"\1\2"]], [b"abcd", b"efgh"], True]
    assert decode_values(types, data) == expected
    for cut in range(0, len(data) - 32, 7):
        with pytest.raises(CannotDecode):
            decode_values(types, data[:cut])
    with pytest.raises(CannotDecode):
        decode_values(types, head + text + word(2**200))
