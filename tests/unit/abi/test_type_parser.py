"""Codecs for type names, tested with examples of the ABI modules."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from ophion.abi import artifact, interface, type_parser
from ophion.abi.type_parser import declared_type, parse_type
from ophion.errors import AbiError


@pytest.mark.parametrize(
    "name", ["", "uint7", "uint264", "bytes33", "bytes0", "tuple", "(uint8", "uint8)", "uint8[-1]"]
)
def test_refuses_names_that_are_no_types(name: str) -> None:
    with pytest.raises(AbiError):
        parse_type(name)


def test_addresses_are_text_or_bytes() -> None:
    value = [("0x" + "5A" * 20, 1)]
    for name in ("(address,uint8)[]", "( address, uint8 )[]"):
        encoded = parse_type(name).encode(value)
        assert parse_type(name).decode(encoded, 0)[0][0].lower() == "0x" + "5a" * 20
        assert parse_type(name, True).decode(encoded, 0) == [(b"\x5a" * 20, 1)]
    entry = {"type": "tuple", "components": [{"type": "address"}, {"type": "uint8"}]}
    assert declared_type(entry, has_raw_addresses=True).decode(encoded[32:], 0) == (b"\x5a" * 20, 1)


@pytest.mark.parametrize("module", [type_parser, interface, artifact])
def test_examples(module: Any) -> None:
    assert doctest.testmod(module).failed == 0
