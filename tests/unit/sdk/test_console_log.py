"""Tests the text of console calls."""

from __future__ import annotations

from ophion.abi.type_parser import parse_type
from ophion.native.crypto import keccak256
from ophion.sdk.console_log import console_text


def test_shows_the_values() -> None:
    data = keccak256(b"log(string,uint256)")[:4] + parse_type("(string,uint256)").encode(("supply", 5))
    assert console_text(data) == "supply 5"


def test_takes_the_signatures_of_older_libraries() -> None:
    data = keccak256(b"log(uint,bool)")[:4] + parse_type("(uint256,bool)").encode((5, True))
    assert console_text(data) == "5 True"


def test_shows_unknown_data_as_it_is() -> None:
    assert console_text(b"\1\2\3\4") == "console.log: unknown data 0x01020304"
    assert "unknown data" in console_text(keccak256(b"log(string)")[:4])
