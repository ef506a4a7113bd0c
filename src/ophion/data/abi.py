"""Contract ABIs: files of solc, Hardhat and Foundry, and the decoding of values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from ophion.errors import CommandError
from ophion.native.crypto import keccak256

_TYPE: Final = re.compile(r"^(uint|int|bytes)(\d*)$")
_ARRAY: Final = re.compile(r"^(.*)\[(\d*)\]$")
_MAX_ITEMS: Final = 1 << 16


class AbiType(Struct, frozen=True):
    """A type: `uint256`, `tuple` with members, an array with its item type."""

    name: str
    members: tuple[AbiType, ...] = ()
    item: AbiType | None = None
    length: int | None = None
    """Items of a fixed array; None for a dynamic one."""

    @property
    def is_dynamic(self) -> bool:
        """Whether the head holds an offset."""
        if self.item is not None:
            return self.length is None or self.item.is_dynamic
        return self.name in ("bytes", "string") or any(member.is_dynamic for member in self.members)

    @property
    def head_bytes(self) -> int:
        """Bytes in the head."""
        if self.is_dynamic:
            return 32
        if self.item is not None:
            return (self.length or 0) * self.item.head_bytes
        return sum(member.head_bytes for member in self.members) if self.name == "tuple" else 32

    @property
    def signature(self) -> str:
        """Name in a signature."""
        if self.item is not None:
            return f"{self.item.signature}[{'' if self.length is None else self.length}]"
        return f"({','.join(one.signature for one in self.members)})" if self.name == "tuple" else self.name


class Parameter(Struct, frozen=True):
    """A parameter of an event or a function."""

    name: str
    type: AbiType
    is_indexed: bool = False


class AbiEntry(Struct, frozen=True):
    """An event or a function."""

    kind: str
    name: str
    parameters: tuple[Parameter, ...]

    @property
    def signature(self) -> str:
        """Name and types."""
        return f"{self.name}({','.join(one.type.signature for one in self.parameters)})"

    @property
    def topic(self) -> bytes:
        """Keccak-256 of the signature: the first topic of an event; its first 4 bytes select a function."""
        return keccak256(self.signature.encode())


class CannotDecode(Exception):
    """Bytes that do not fit the types."""


def load_abis(folder: Path) -> list[AbiEntry]:
    """Read every `*.json` below a folder, or one file; equal entries are listed once."""
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.json"))
    if not files:
        raise CommandError(f"There is no ABI file (*.json) in {folder}.")
    found: dict[tuple[str, str, tuple[bool, ...]], AbiEntry] = {}
    for file in files:
        try:
            for item in _items(json.loads(file.read_bytes())):
                entry = _entry(item)
                if entry is not None:
                    key = (entry.kind, entry.signature, tuple(one.is_indexed for one in entry.parameters))
                    found.setdefault(key, entry)
        except OSError as error:
            raise CommandError(f"Unable to read {file}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CommandError(f"{file} is not an ABI: {error}") from error
    return list(found.values())


def _items(content: Any) -> Iterator[Any]:
    """Members of an ABI list, wherever the compiler puts it."""
    if isinstance(content, str):
        content = json.loads(content)
    if isinstance(content, list):
        yield from content
    elif isinstance(content, dict) and "abi" in content:
        yield from _items(content["abi"])
    elif isinstance(content, dict) and "contracts" in content:
        for one in content["contracts"].values():
            for contract in [one] if "abi" in one else one.values():
                yield from _items(contract["abi"])
    elif not isinstance(content, dict):
        raise ValueError("a list, or an object with the member 'abi', is expected")


def _entry(item: Any) -> AbiEntry | None:
    if not isinstance(item, dict):
        raise ValueError(f"an entry is not an object: {item!r}")
    kind = item.get("type", "function")
    if kind not in ("event", "function") or item.get("anonymous"):
        return None
    inputs = item.get("inputs", [])
    parameters = tuple(
        Parameter(one.get("name") or f"arg{at}", _type(one), bool(one.get("indexed"))) for at, one in enumerate(inputs)
    )
    return AbiEntry(kind, item["name"], parameters)


def _type(item: Any) -> AbiType:
    name = str(item["type"])
    array = _ARRAY.match(name)
    if array:
        inner = _type({**item, "type": array[1]})
        return AbiType("array", item=inner, length=int(array[2]) if array[2] else None)
    if name == "tuple":
        return AbiType(name, tuple(_type(member) for member in item["components"]))
    name = {"uint": "uint256", "int": "int256", "function": "bytes24"}.get(name, name)
    sized = _TYPE.match(name)
    if name not in ("address", "bool", "string") and not sized:
        raise ValueError(f"unknown type '{name}'")
    return AbiType(name)


def decode_values(types: Sequence[AbiType], data: bytes) -> list[Any]:
    """Decode the values of a tuple; raises `CannotDecode`."""
    values, at = [], 0
    for type in types:
        place = _word(data, at) if type.is_dynamic else at
        values.append(decode_value(type, data, place))
        at += type.head_bytes
    return values


def decode_value(type: AbiType, data: bytes, at: int) -> Any:
    """Decode one value at a position."""
    if type.item is not None:
        count = type.length
        if count is None:
            count, at = _word(data, at), at + 32
        if count > _MAX_ITEMS or count * 32 > len(data) + 32:
            raise CannotDecode("an array is longer than its data")
        return decode_values([type.item] * count, data[at:])
    if type.name == "tuple":
        return decode_values(type.members, data[at:])
    if type.name in ("bytes", "string"):
        length = _word(data, at)
        found = data[at + 32 : at + 32 + length]
        if len(found) != length:
            raise CannotDecode("a byte string ends too early")
        return found if type.name == "bytes" else found.decode(errors="replace")
    return decode_word(type, data[at : at + 32])


def decode_word(type: AbiType, word: bytes) -> Any:
    """Decode a value of one word, such as a topic."""
    if len(word) != 32:
        raise CannotDecode("the data ends too early")
    if type.name == "address":
        return word[12:]
    if type.name == "bool":
        return word[31] != 0
    if type.name.startswith("bytes"):
        return word[: int(type.name[5:])]
    return int.from_bytes(word, "big", signed=type.name.startswith("int"))


def _word(data: bytes, at: int) -> int:
    if at + 32 > len(data):
        raise CannotDecode("the data ends too early")
    return int.from_bytes(data[at : at + 32], "big")
