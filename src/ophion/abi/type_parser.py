"""Parses type names into codecs.

>>> codec = parse_type("(address,uint256[])")
>>> data = codec.encode(("0x" + "11" * 20, [1, 2]))
>>> codec.decode(data, 0)
('0x1111111111111111111111111111111111111111', [1, 2])
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ophion.abi.codec import Codec, array_codec, elementary_codec, tuple_codec
from ophion.errors import AbiError

MAX_DEPTH = 32
_ARRAY = re.compile(r"^(.*)\[(\d*)\]$", re.DOTALL)


@lru_cache(4096)
def parse_type(name: str, has_raw_addresses: bool = False) -> Codec:
    """Return the codec of a type by its name. Raises `AbiError` for a name that is not a type.

    Addresses decode to text with checksum, or to bytes with `has_raw_addresses`.
    """
    return _parsed(name.replace(" ", ""), has_raw_addresses, 0)


def _parsed(name: str, has_raw_addresses: bool, depth: int) -> Codec:
    if depth > MAX_DEPTH:
        raise AbiError(f"types nest more than {MAX_DEPTH} deep")
    if (found := _ARRAY.match(name)) is not None:
        return array_codec(_parsed(found[1], has_raw_addresses, depth + 1), int(found[2]) if found[2] else None)
    if name.startswith("(") and name.endswith(")"):
        return tuple_codec([_parsed(part, has_raw_addresses, depth + 1) for part in split_types(name[1:-1])])
    return elementary_codec(name, has_raw_addresses)


def split_types(text: str) -> list[str]:
    """Split a list of types at commas. Commas inside tuples do not split."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
        if depth < 0:
            raise AbiError(f"'{text}' closes a bracket that is not open")
    if depth:
        raise AbiError(f"'{text}' does not close all its brackets")
    return [*parts, text[start:]] if text else []


def declared_type(entry: Mapping[str, Any], has_raw_addresses: bool = False, depth: int = 0) -> Codec:
    """Return the codec of an ABI entry with `type` and, for tuples, `components`."""
    if depth > MAX_DEPTH:
        raise AbiError(f"types nest more than {MAX_DEPTH} deep")
    name = str(entry.get("type", ""))
    if not name.startswith("tuple"):
        return parse_type(name, has_raw_addresses)
    components = entry.get("components") or ()
    title = str(entry.get("internalType", "")).partition("[")[0].rpartition(".")[2].removeprefix("struct ")
    codec = tuple_codec(
        [declared_type(one, has_raw_addresses, depth + 1) for one in components],
        [str(one.get("name", "")) for one in components],
        title,
    )
    for size in re.findall(r"\[(\d*)\]", name):
        codec = array_codec(codec, int(size) if size else None)
    return codec
