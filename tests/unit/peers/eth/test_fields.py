"""Reading fields of eth messages."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.errors import DecodeError
from ophion.peers.eth import fields
from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError

hashes = st.lists(st.binary(min_size=32, max_size=32), max_size=40)


@given(hashes)
def test_lists_of_hashes_come_back(found: list[bytes]) -> None:
    encoded = fields.encode_hashes(found)
    assert encoded == rlp.encode(found)
    assert fields.list_of_hashes(encoded, "hashes") == found


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_only_lists_of_hashes_are_lists_of_hashes(items: list[bytes]) -> None:
    encoded = rlp.encode(items)
    if all(len(item) == 32 for item in items):
        assert fields.list_of_hashes(encoded, "hashes") == items
    else:
        with pytest.raises(RlpError):
            fields.list_of_hashes(encoded, "hashes")


@given(st.binary(max_size=200))
def test_no_bytes_break_the_readers(data: bytes) -> None:
    for read in (
        lambda: fields.list_of_hashes(data, "x"),
        lambda: fields.with_id(data, "x"),
        lambda: fields.items_of(data, 1, "x"),
        lambda: fields.parts_of(data, 2, "x"),
        lambda: fields.number(data, 64, "x"),
    ):
        with contextlib.suppress(DecodeError):
            read()


@pytest.mark.parametrize(
    ("bits", "value", "fits"), [(8, 255, True), (8, 256, False), (100, 2**100 - 1, True), (100, 2**100, False)]
)
def test_numbers_are_bounded(bits: int, value: int, fits: bool) -> None:
    item = rlp.scalar(value)
    if fits:
        assert fields.number(item, bits, "x") == value
    else:
        with pytest.raises(RlpError):
            fields.number(item, bits, "x")


def test_a_number_of_megabytes_is_refused_by_its_length() -> None:
    with pytest.raises(RlpError, match="not a number of 64 bits"):
        fields.number(b"\x01" * (2 << 20), 64, "number")


def test_a_request_has_an_id_of_64_bits() -> None:
    assert fields.with_id(fields.enclosed(0, b"\xc0"), "x") == (0, b"\xc0")
    assert fields.with_id(fields.enclosed(2**64 - 1, b"\xc0"), "x") == (2**64 - 1, b"\xc0")
    with pytest.raises(RlpError):
        fields.with_id(fields.enclosed(2**64, b"\xc0"), "x")
