"""The ABI codec agrees with eth-abi, and refuses invalid encodings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ophion.abi.type_parser import parse_type
from ophion.errors import AbiError

eth_abi = pytest.importorskip("eth_abi", reason="eth-abi is the oracle; it comes with web3")

ADDRESSES = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
BASIC: list[tuple[str, st.SearchStrategy[Any]]] = [
    ("uint256", st.integers(0, 2**256 - 1)),
    ("uint8", st.integers(0, 255)),
    ("int16", st.integers(-(2**15), 2**15 - 1)),
    ("bool", st.booleans()),
    ("address", ADDRESSES),
    ("bytes4", st.binary(min_size=4, max_size=4)),
    ("bytes", st.binary(max_size=70)),
    ("string", st.text(st.characters(codec="utf-8"), max_size=20)),
]


@st.composite
def typed_values(draw: st.DrawFn, depth: int = 2) -> tuple[str, Any]:
    kind = draw(st.integers(0, 5 if depth else 0))
    if kind <= 2:
        name, values = draw(st.sampled_from(BASIC))
        return name, draw(values)
    if kind == 3:
        parts = draw(st.lists(typed_values(depth - 1), min_size=1, max_size=3))
        return f"({','.join(name for name, _ in parts)})", tuple(value for _, value in parts)
    name, values = draw(st.sampled_from(BASIC))
    size = draw(st.integers(0, 3))
    if kind == 4:
        return f"{name}[]", draw(st.lists(values, min_size=size, max_size=size))
    return f"{name}[{size + 1}]", draw(st.lists(values, min_size=size + 1, max_size=size + 1))


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.lower() if isinstance(value, str) and value[:2] == "0x" and len(value) == 42 else value


@settings(max_examples=200, deadline=None)
@given(st.lists(typed_values(), min_size=1, max_size=3))
def test_agrees_with_eth_abi(parts: list[tuple[str, Any]]) -> None:
    types, values = [name for name, _ in parts], [value for _, value in parts]
    own = parse_type(f"({','.join(types)})")
    encoded = own.encode(values)
    assert encoded == eth_abi.encode(types, values)
    assert _plain(own.decode(encoded, 0)) == _plain(eth_abi.decode(types, encoded)) == _plain(values)


@settings(max_examples=200, deadline=None)
@given(typed_values(), st.binary(max_size=200))
def test_decodes_any_data_or_raises(part: tuple[str, Any], data: bytes) -> None:
    own = parse_type(f"({part[0]})")
    try:
        own.decode(data, 0)
    except AbiError:
        return


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("uint8", 256),
        ("uint8", -1),
        ("uint8", True),
        ("uint8", "1"),
        ("int8", 128),
        ("address", "0x11"),
        ("address", 5),
        ("bool", 1),
        ("bytes4", b"abc"),
        ("bytes", "text"),
        ("string", b"bytes"),
        ("uint8[2]", [1]),
        ("(uint8,uint8)", [1]),
        ("uint8[]", 5),
    ],
)
def test_refuses_values_of_other_types(name: str, value: Any) -> None:
    with pytest.raises(AbiError):
        parse_type(name).encode(value)


def test_refuses_a_length_that_the_data_cannot_hold() -> None:
    huge = (32).to_bytes(32, "big") + (2**200).to_bytes(32, "big")
    with pytest.raises(AbiError, match="too few"):
        parse_type("(uint256[])").decode(huge, 0)
