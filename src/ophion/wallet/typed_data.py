"""Signed typed structures (EIP-712).

    digest = keccak(0x19 0x01 ‖ hash(domain) ‖ hash(message))

The client supplies the types together with the data, so names, depth and sizes are checked here. Invalid data raises
`TypedDataError` with its position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ophion.errors import OphionError
from ophion.native.crypto import keccak256
from ophion.primitives.hexcodec import HexError, parse_data_lenient
from ophion.primitives.types import Hash32

Member: TypeAlias = tuple[str, str]
"""Type and name of one field of an EIP-712 structure."""
Types: TypeAlias = Mapping[str, Sequence[Member]]

_DOMAIN: Final = "EIP712Domain"
_DOMAIN_MEMBERS: Final = (
    ("string", "name"),
    ("string", "version"),
    ("uint256", "chainId"),
    ("address", "verifyingContract"),
    ("bytes32", "salt"),
)
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_ARRAY: Final = re.compile(r"(.+)\[(\d{0,9})\]", re.DOTALL)
_INTEGER: Final = re.compile(r"(u?)int(\d{0,3})")
_FIXED_BYTES: Final = re.compile(r"bytes([1-9]|[12]\d|3[0-2])")
_DECIMAL: Final = re.compile(r"-?\d{1,78}")
_HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]{1,64}")
_MAX_DEPTH: Final = 32
_MAX_TYPES: Final = 64
_MAX_MEMBERS: Final = 1024
_MAX_NAME: Final = 128
_MAX_VALUES: Final = 100_000
"""Maximum number of values, because hashing in Python is slow. Real data is far smaller."""
_WORD: Final = 32


class TypedDataError(OphionError):
    """Raised when typed data cannot be hashed."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")


def typed_data_hash(document: Any) -> Hash32:
    """Return the hash that is signed for an object with `types`, `primaryType`, `domain` and `message`."""
    if not isinstance(document, dict):
        raise TypedDataError("typed data", "an object is expected")
    types = _types(document.get("types"))
    domain, message, primary = document.get("domain"), document.get("message"), document.get("primaryType")
    if not isinstance(domain, dict):
        raise TypedDataError("domain", "an object is expected")
    if not isinstance(primary, str) or (primary not in types and primary != _DOMAIN):
        raise TypedDataError("primaryType", "one of the types is expected")
    if _DOMAIN not in types:
        types = {**types, _DOMAIN: [member for member in _DOMAIN_MEMBERS if member[1] in domain]}
    encoder = _Encoder(types)
    parts = [encoder.struct_hash(_DOMAIN, domain, "domain", 0)]
    if primary != _DOMAIN:
        parts.append(encoder.struct_hash(primary, message, "message", 0))
    return keccak256(b"\x19\x01" + b"".join(parts))


def _types(value: Any) -> Types:
    if not isinstance(value, dict):
        raise TypedDataError("types", "an object is expected")
    if len(value) > _MAX_TYPES:
        raise TypedDataError("types", f"more than {_MAX_TYPES}")
    types = {name: _members(name, members) for name, members in value.items()}
    if sum(map(len, types.values())) > _MAX_MEMBERS:
        raise TypedDataError("types", f"more than {_MAX_MEMBERS} members")
    return types


def _members(name: str, value: Any) -> list[Member]:
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise TypedDataError("types", f"{name!r:.50} is not the name of a type")
    if not isinstance(value, list):
        raise TypedDataError(f"types.{name}", "an array is expected")
    members = []
    for member in value:
        kind, label = (member.get("type"), member.get("name")) if isinstance(member, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(label, str) or max(len(kind), len(label)) > _MAX_NAME:
            raise TypedDataError(f"types.{name}", "members have a name and a type")
        members.append((kind, label))
    return members


class _Encoder:
    """Hashes the values of one set of EIP-712 types. Caches the hash of each type."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._type_hashes: dict[str, Hash32] = {}
        self._left = _MAX_VALUES

    def struct_hash(self, name: str, value: Any, place: str, depth: int) -> Hash32:
        """Hash a structure: its type and its fields."""
        if not isinstance(value, dict):
            raise TypedDataError(place, f"an object ({name}) is expected")
        words = [self._type_hash(name)]
        for kind, label in self._types[name]:
            words.append(self._word(kind, value.get(label), f"{place}.{label}", depth + 1))
        return keccak256(b"".join(words))

    def _type_hash(self, name: str) -> Hash32:
        known = self._type_hashes.get(name)
        if known is None:
            others = sorted(self._referenced(name) - {name})
            text = "".join(_signature(one, self._types[one]) for one in (name, *others))
            known = self._type_hashes[name] = keccak256(text.encode())
        return known

    def _referenced(self, name: str) -> set[str]:
        """Return the names of all structures that a type refers to, including the type itself."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += [base for base in self._bases(one) if base in self._types]
        return found

    def _bases(self, name: str) -> Iterator[str]:
        for kind, _ in self._types[name]:
            yield kind.partition("[")[0]

    def _word(self, kind: str, value: Any, place: str, depth: int) -> bytes:
        """Return the 32 bytes that encode a value inside a structure."""
        self._left -= 1
        if self._left < 0:
            raise TypedDataError(place, f"more than {_MAX_VALUES} values")
        if depth > _MAX_DEPTH:
            raise TypedDataError(place, f"nested deeper than {_MAX_DEPTH} levels")
        if kind in self._types:
            return bytes(_WORD) if value is None else self.struct_hash(kind, value, place, depth)
        array = _ARRAY.fullmatch(kind)
        if array is not None:
            return self._array(array[1], array[2], value, place, depth)
        if kind == "string":
            if not isinstance(value, str):
                raise TypedDataError(place, "a string is expected")
            return keccak256(value.encode("utf-8", "surrogatepass"))
        if kind == "bytes":
            return keccak256(_bytes(value, place))
        return _atom(kind, value, place)

    def _array(self, kind: str, size: str, value: Any, place: str, depth: int) -> bytes:
        if not isinstance(value, list) or (size and len(value) != int(size)):
            raise TypedDataError(place, f"an array of {size or 'any number of'} elements is expected")
        words = (self._word(kind, one, f"{place}[{index}]", depth + 1) for index, one in enumerate(value))
        return keccak256(b"".join(words))


def _signature(name: str, members: Sequence[Member]) -> str:
    return f"{name}({','.join(f'{kind} {label}' for kind, label in members)})"


def _atom(kind: str, value: Any, place: str) -> bytes:
    """Encode a value of an elementary type as one word."""
    if kind == "bool":
        if not isinstance(value, bool):
            raise TypedDataError(place, "true or false is expected")
        return int(value).to_bytes(_WORD, "big")
    if kind == "address":
        address = _bytes(value, place)
        if len(address) != 20:
            raise TypedDataError(place, "20 bytes are expected")
        return address.rjust(_WORD, b"\0")
    fixed = _FIXED_BYTES.fullmatch(kind)
    if fixed is not None:
        data = _bytes(value, place)
        if len(data) > int(fixed[1]):
            raise TypedDataError(place, f"at most {fixed[1]} bytes are expected")
        return data.ljust(_WORD, b"\0")
    integer = _INTEGER.fullmatch(kind)
    if integer is None:
        raise TypedDataError(place, f"unknown type {kind!r:.50}")
    return _integer(not integer[1], int(integer[2] or 256), value, place)


def _integer(is_signed: bool, bits: int, value: Any, place: str) -> bytes:
    if bits % 8 or not 8 <= bits <= 256:
        raise TypedDataError(place, f"there are no integers of {bits} bits")
    number = value
    if isinstance(value, str):
        if _DECIMAL.fullmatch(value):
            number = int(value)
        elif _HEXADECIMAL.fullmatch(value):
            number = int(value, 16)
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypedDataError(place, "a number is expected")
    least, most = (-(1 << (bits - 1)), 1 << (bits - 1)) if is_signed else (0, 1 << bits)
    if not least <= number < most:
        raise TypedDataError(place, f"the number does not fit {bits} bits")
    return number.to_bytes(_WORD, "big", signed=number < 0)


def _bytes(value: Any, place: str) -> bytes:
    try:
        return parse_data_lenient(value) if isinstance(value, str) else _refuse(place)
    except HexError as error:
        raise TypedDataError(place, error.problem) from None


def _refuse(place: str) -> bytes:
    raise TypedDataError(place, "bytes in hexadecimal are expected")
