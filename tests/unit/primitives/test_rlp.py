"""Tests RLP: strict encoding and decoding, with one clear error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError

items = st.recursive(st.binary(max_size=80), lambda inner: st.lists(inner, max_size=6), max_leaves=40)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (b"", "80"),
        (b"\x00", "00"),
        (b"\x7f", "7f"),
        (b"\x80", "8180"),
        (b"dog", "83646f67"),
        (b"a" * 55, "b7" + "61" * 55),
        (b"a" * 56, "b838" + "61" * 56),
        (0, "80"),
        (15, "0f"),
        (1024, "820400"),
        ([], "c0"),
        ([b"cat", b"dog"], "c88363617483646f67"),
        ([[], [[]], [[], [[]]]], "c7c0c1c0c3c0c1c0"),
        ([b"a" * 60], "f83e" + "b83c" + "61" * 60),
    ],
)
def test_known_values_encode_as_the_specification_says(value: rlp.Encodable, encoded: str) -> None:
    assert rlp.encode(value).hex() == encoded


@pytest.mark.parametrize(
    ("encoded", "offset"),
    [
        ("", 0),
        ("81", 0),
        ("8100", 0),
        ("817f", 0),
        ("83646f", 0),
        ("b800", 1),
        ("b837" + "61" * 55, 1),
        ("b90038" + "61" * 56, 1),
        ("b9", 1),
        ("f800", 1),
        ("c2c280", 1),
        ("c18080", 2),
        ("c283", 0),
        ("c483646f67ff", 5),
        ("bfffffffffffffffff", 0),
        ("8080", 1),
    ],
)
def test_malformed_bytes_are_refused_with_their_offset(encoded: str, offset: int) -> None:
    with pytest.raises(RlpError) as caught:
        rlp.decode(bytes.fromhex(encoded))
    assert caught.value.offset == offset


def test_nesting_beyond_the_limit_is_refused_without_exhausting_the_stack() -> None:
    nested = b"\xc0"
    for _ in range(rlp.MAX_DEPTH + 1):
        nested = rlp.list_of([nested])
    with pytest.raises(RlpError, match="nested deeper"):
        rlp.decode(nested)


def test_the_deepest_allowed_nesting_decodes() -> None:
    nested = b"\xc0"
    for _ in range(rlp.MAX_DEPTH - 1):
        nested = rlp.list_of([nested])
    assert rlp.encode(rlp.decode(nested)) == nested


@given(items)
def test_every_value_survives_a_round_trip(value: rlp.Item) -> None:
    assert rlp.decode(rlp.encode(value)) == value


@given(st.binary(max_size=200))
def test_arbitrary_bytes_decode_to_a_value_with_that_encoding_or_raise_one_error(data: bytes) -> None:
    try:
        value = rlp.decode(data)
    except RlpError:
        return
    assert rlp.encode(value) == data


@given(st.lists(items, max_size=6))
def test_concatenated_items_are_cut_where_they_end(values: list[rlp.Item]) -> None:
    encoded = [rlp.encode(value) for value in values]
    stream = b"".join(encoded)
    offset = 0
    for item in encoded:
        end = rlp.item_end(stream, offset)
        assert stream[offset:end] == item
        offset = end
    assert offset == len(stream)


def test_item_end_looks_beyond_the_bytes_at_hand() -> None:
    assert rlp.item_end(bytes.fromhex("f90400"), 0) == 3 + 0x400


def test_split_list_gives_the_encoded_items() -> None:
    assert rlp.split_list(rlp.encode([b"cat", [b"dog"], 5]), 1024) == [b"\x83cat", b"\xc4\x83dog", b"\x05"]
    with pytest.raises(RlpError, match="list is expected"):
        rlp.split_list(b"\x83cat", 1024)
    with pytest.raises(RlpError, match="beyond its list"):
        rlp.split_list(bytes.fromhex("c183"), 1024)


def test_split_list_stops_at_the_first_item_too_many() -> None:
    assert rlp.split_list(rlp.list_of([b"\x01"] * 3), 3) == [b"\x01"] * 3
    with pytest.raises(RlpError, match="more than 3 items") as caught:
        rlp.split_list(rlp.list_of([b"\x01"] * 500_000), 3)
    assert caught.value.offset == 4 + 3
    with pytest.raises(RlpError, match="more than 0 items"):
        rlp.split_list(rlp.list_of([b"\x01"]), 0)


def test_numbers_with_leading_zeros_and_lists_are_no_scalars() -> None:
    assert rlp.decode_int(b"\x04\x00") == 1024
    with pytest.raises(RlpError, match="leading zeros"):
        rlp.decode_int(b"\x00\x01")
    with pytest.raises(RlpError, match="a list where a number"):
        rlp.decode_int([])


def test_negative_integers_are_a_programming_error() -> None:
    with pytest.raises(ValueError, match="negative"):
        rlp.encode(-1)


def test_items_are_bounded_at_all_levels_together() -> None:
    value = [b"\x01", [b"\x02", [b"\x03"]], b"\x04"]
    encoded = rlp.encode(value)
    assert rlp.decode(encoded, 6) == value
    for most in range(6):
        with pytest.raises(rlp.RlpError, match="too many items"):
            rlp.decode(encoded, most)
    with pytest.raises(rlp.RlpError, match="too many items"):
        rlp.decode(rlp.list_of([rlp.EMPTY_LIST] * (rlp.MAX_ITEMS + 1)))
