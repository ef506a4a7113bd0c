"""Tests ABI files of several compilers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ophion.abi.interface import EventType
from ophion.data.abi_files import AbiEntry, load_abis
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
    assert isinstance(entry, EventType)
    assert (entry.signature, entry.is_indexed) == ("Moved(uint8)", [True])


@pytest.mark.parametrize(
    "content", [3, [3], [{"type": "event", "name": "A", "inputs": [{"type": "word"}]}], {"abi": 1}]
)
def test_other_files_are_refused_by_name(tmp_path: Path, content: object) -> None:
    with pytest.raises(CommandError, match="abi.json is not an ABI"):
        one(tmp_path, content)


@pytest.mark.parametrize("kind", ["event", "function"])
@pytest.mark.parametrize("name", ["../../../A", "/etc/A", "a b", "", "A\n", "..", "x" * 201])
def test_a_name_that_is_no_identifier_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    """The name becomes part of a path. An ABI of a third party must not choose a place outside of the export."""
    with pytest.raises(CommandError, match="abi.json is not an ABI: .* is not a name"):
        one(tmp_path, [{"type": kind, "name": name, "inputs": []}])


@pytest.mark.parametrize("name", ["_", "$a1", "Transfer_2"])
def test_every_identifier_is_a_name(tmp_path: Path, name: str) -> None:
    assert [found.name for found in one(tmp_path, [{"type": "event", "name": name, "inputs": []}])] == [name]


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no ABI file"):
        load_abis(tmp_path)


def test_a_missing_folder_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no file or directory"):
        load_abis(tmp_path / "missing")
    with pytest.raises(CommandError, match="There is no ABI file"):
        load_abis(tmp_path)


def test_addresses_are_bytes_and_types_have_their_canonical_names(tmp_path: Path) -> None:
    (entry,) = one(tmp_path, [FUNCTION])
    assert entry.signature == "f(int16,string,(address,bytes)[],bytes4[2],bool)"
    values = (-3, "hello", [(b"\7".rjust(20, b"\0"), b"\1\2")], [b"abcd", b"efgh"], True)
    assert entry.inputs.codec.decode(entry.inputs.encode(values), 0) == values


def test_only_wanted_kinds_are_read(tmp_path: Path) -> None:
    assert [type(found).__name__ for found in one(tmp_path, [EVENT, FUNCTION])] == ["EventType", "Function"]
    assert [found.name for found in load_abis(tmp_path, {"event"})] == ["Moved"]
