"""Tests the decoding of the fields of eth messages."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.errors import DecodeError
from ophion.peers.eth import field_decoding
from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError

hashes = st.lists(st.binary(min_size=32, max_size=32), max_size=40)


@given(hashes)
def test_lists_of_hashes_round_trip(found: list[bytes]) -> None:
    encoded = field_decoding.encode_hashes(found)
    assert encoded == rlp.encode(found)
    assert field_decoding.list_of_hashes(encoded, "hashes") == found


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_only_lists_of_hashes_are_lists_of_hashes(items: list[bytes]) -> None:
    encoded = rlp.encode(items)
    if all(len(item) == 32 for item in items):
        assert field_decoding.list_of_hashes(encoded, "hashes") == items
    else:
        with pytest.raises(RlpError):
            field_decoding.list_of_hashes(encoded, "hashes")


@given(st.binary(max_size=200))
def test_no_bytes_break_the_readers(data: bytes) -> None:
    for read in (
        lambda: field_decoding.list_of_hashes(data, "x"),
        lambda: field_decoding.with_id(data, "x"),
        lambda: field_decoding.items_of(data, 1, 64, "x"),
        lambda: field_decoding.parts_of(data, 2, "x"),
        lambda: field_decoding.number(data, 64, "x"),
    ):
        with contextlib.suppress(DecodeError):
            read()


@pytest.mark.parametrize(
    ("bits", "value", "fits"), [(8, 255, True), (8, 256, False), (100, 2**100 - 1, True), (100, 2**100, False)]
)
def test_numbers_are_bounded(bits: int, value: int, fits: bool) -> None:
    item = rlp.scalar(value)
    if fits:
        assert field_decoding.number(item, bits, "x") == value
    else:
        with pytest.raises(RlpError):
            field_decoding.number(item, bits, "x")


def test_a_number_of_megabytes_is_refused_by_its_length() -> None:
    with pytest.raises(RlpError, match="not a number of 64 bits"):
        field_decoding.number(b"\x01" * (2 << 20), 64, "number")


def test_a_request_has_an_id_of_64_bits() -> None:
    assert field_decoding.with_id(field_decoding.enclosed(0, b"\xc0"), "x") == (0, b"\xc0")
    assert field_decoding.with_id(field_decoding.enclosed(2**64 - 1, b"\xc0"), "x") == (2**64 - 1, b"\xc0")
    with pytest.raises(RlpError):
        field_decoding.with_id(field_decoding.enclosed(2**64, b"\xc0"), "x")
