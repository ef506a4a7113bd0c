"""Hexadecimal text has one output form and several input forms; other text gives one error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.primitives import hexcodec
from ophion.primitives.hexcodec import HexError


def test_data_keeps_its_length_and_quantity_drops_leading_zeros() -> None:
    assert hexcodec.data(b"") == "0x"
    assert hexcodec.data(b"\x00\xff") == "0x00ff"
    assert hexcodec.quantity(0) == "0x0"
    assert hexcodec.quantity(255) == "0xff"
    with pytest.raises(ValueError, match="negative"):
        hexcodec.quantity(-1)


@given(st.binary(max_size=64))
def test_data_survives_a_round_trip(value: bytes) -> None:
    assert hexcodec.parse_data_lenient(hexcodec.data(value)) == value
    assert hexcodec.parse_data_lenient(value.hex().upper()) == value


@given(st.integers(0, 2**256 - 1))
def test_quantities_survive_a_round_trip(value: int) -> None:
    assert hexcodec.parse_number(hexcodec.quantity(value)) == value
    assert hexcodec.parse_number(str(value)) == value


@pytest.mark.parametrize("text", ["0x0", "0xfff", "0xgg", "0x f", "0x00 00", "0x-1", "0x0x00"])
def test_data_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(HexError):
        hexcodec.parse_data_lenient(text)


def test_data_of_another_size_is_refused() -> None:
    assert hexcodec.parse_data_lenient("0x" + "00" * 20, 20) == bytes(20)
    with pytest.raises(HexError, match="must have 20 bytes and has 2"):
        hexcodec.parse_data_lenient("0x0000", 20)


@pytest.mark.parametrize(("text", "value"), [("0x10", 16), ("0X10", 16), ("#10", 16), ("10", 10), ("010", 8), ("0", 0)])
def test_numbers_may_be_hex_decimal_or_octal(text: str, value: int) -> None:
    assert hexcodec.parse_number(text) == value


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1e3", "089", "0x", "#", "x", "\u0661", "9" * 5000, " 1", "0x1_0", "0x 1", "0x" + "f" * 65]
)
def test_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(HexError):
        hexcodec.parse_number(text)


def test_a_number_wider_than_asked_is_refused_and_long_text_is_cut_in_the_message() -> None:
    with pytest.raises(HexError, match="wider than 64 bits"):
        hexcodec.parse_number("18446744073709551616", 64)
    with pytest.raises(HexError) as caught:
        hexcodec.parse_data_lenient("0x" + "g" * 10_000)
    assert len(str(caught.value)) < 300
