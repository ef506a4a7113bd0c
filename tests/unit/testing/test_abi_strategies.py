"""ABI strategies generate valid values of their types."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ophion.abi.interface import Abi
from ophion.abi.type_parser import parse_type
from ophion.testing.abi_strategies import abi_values, arguments_of

TYPES = ["uint8", "int24", "bool", "address", "bytes3", "function", "(string,bytes)[2]", "(uint256,address[])[]"]


@pytest.mark.parametrize("name", TYPES)
def test_values_survive_encoding(name: str) -> None:
    codec = parse_type(name)

    @settings(max_examples=20, deadline=None)
    @given(abi_values(name))
    def check(value: Any) -> None:
        assert parse_type(f"({name})").decode(parse_type(f"({name})").encode([value]), 0) == (value,)

    check()
    assert codec.name == name


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_addresses_are_those_that_are_given(data: st.DataObject) -> None:
    function = Abi.of(["f(address to, uint8 amount)"]).function("f")
    to, amount = data.draw(arguments_of(function, [b"\1" * 20]))
    assert to == "0x" + "01" * 20
    assert 0 <= amount < 256
