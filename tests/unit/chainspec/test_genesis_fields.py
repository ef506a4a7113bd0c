"""Keys of genesis JSON: any capitalisation and comments are accepted, other input gives one clear error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.chainspec.genesis_fields import GenesisObject, LowerCaseObject, as_number, parse_address_lenient, parse_json
from ophion.errors import GenesisError
from ophion.primitives.hexcodec import HexError


def members(**values: Any) -> GenesisObject:
    return GenesisObject(LowerCaseObject(list(values.items())))


def test_keys_are_folded_at_every_depth_and_their_spelling_is_kept() -> None:
    value, warnings = parse_json('{"Config": {"ChainID": 5}, "list": [{"A": 1}]}')
    assert value["config"]["chainid"] == 5
    assert value["list"][0]["a"] == 1
    assert value["config"].spelling == {"chainid": "ChainID"}
    assert warnings == []


def test_comments_are_ignored_with_a_warning_but_not_inside_text() -> None:
    text = '{ // one\n "a": "http://x/*y*/", /* two\n lines */ "b": 2 }'
    value, warnings = parse_json(text)
    assert (value["a"], value["b"]) == ("http://x/*y*/", 2)
    assert len(warnings) == 1
    assert "comments" in warnings[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1, column 1"),
        ('{"a": }', "line 1, column 7"),
        ('{\n"a": 1,\n}', "line 3, column 1"),
        ("[]", "must be a JSON object"),
        ("5", "must be a JSON object"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ('{"a": ' + "9" * 5000 + "}", "a number of 5000 digits"),
        ('{"a": "x', "Unterminated string"),
        ('{"a": 1 /* open', "Expecting"),
    ],
)
def test_malformed_text_is_refused_with_its_position(text: str, problem: str) -> None:
    with pytest.raises(GenesisError, match=problem):
        parse_json(text)


def test_a_repeated_member_is_an_error_for_who_asks_for_it_and_a_warning_otherwise() -> None:
    value, warnings = parse_json('{"a": 1, "A": 2, "b": [{"comment": "x", "comment": "y"}], "c": 3}')
    assert warnings == ["Members that appear twice in one object are ignored: comment, A"]
    top = GenesisObject(value)
    assert top.number("c") == 3
    for name in ("a", "A"):
        with pytest.raises(GenesisError, match="member 'A' appears twice in one object"):
            top.get(name)


def test_a_warning_names_few_of_many_repeated_members() -> None:
    text = ", ".join(f'"k{number}": 1, "k{number}": 2' for number in range(1000))
    [warning] = parse_json(f"{{{text}}}")[1]
    assert warning.endswith("ignored: k0, k1, k2, k3, k4, and 995 more")


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"a":['])
def test_ten_megabytes_of_nesting_are_refused_at_once(opening: str) -> None:
    with pytest.raises(GenesisError, match="nested deeper than 32 levels at line 1"):
        parse_json(opening * (10_000_000 // len(opening)))


@pytest.mark.parametrize("text", ['"' + '\\"' * 500_000, "/*" * 500_000, '{"a' + "//" * 500_000])
def test_text_without_an_end_is_read_once(text: str) -> None:
    with pytest.raises(GenesisError):
        parse_json(text)


def test_bytes_must_be_utf8_and_may_have_a_byte_order_mark() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}')[0] == {"a": 1}
    with pytest.raises(GenesisError, match="not UTF-8 text at byte 6"):
        parse_json(b'{"a": \xff}')


@given(st.text(max_size=300))
def test_arbitrary_text_gives_an_object_or_one_error(text: str) -> None:
    try:
        value, _ = parse_json(text)
    except GenesisError:
        return
    assert isinstance(value, LowerCaseObject)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), json_values, max_size=3))
def test_readers_give_a_value_or_name_the_member(document: dict[str, Any]) -> None:
    try:
        value, _ = parse_json(json.dumps(document))
    except GenesisError:
        return
    for name in document:
        for read in (
            GenesisObject.number,
            GenesisObject.hex_number,
            GenesisObject.plain_number,
            GenesisObject.flag,
            GenesisObject.text,
            GenesisObject.data,
            GenesisObject.address,
            GenesisObject.child,
            GenesisObject.children,
        ):
            try:
                read(GenesisObject(value, "config"), name)
            except GenesisError as error:
                assert error.place is not None
                assert error.place.startswith(f"config.{name}")


@pytest.mark.parametrize(
    ("value", "number"), [(5, 5), ("0x10", 16), ("0X10", 16), ("10", 10), (" 7 ", 7), ("1f", None), ("", None)]
)
def test_numbers_are_json_numbers_hex_or_decimal_text(value: Any, number: int | None) -> None:
    assert as_number(value) == number


@pytest.mark.parametrize("value", [True, 1.5, [], {}, "0x", "-1", "1e3"])
def test_other_values_are_no_numbers(value: Any) -> None:
    with pytest.raises(GenesisError, match="Invalid gasLimit in genesis block configuration"):
        members(gasLimit=value).number("gasLimit")


def test_numbers_have_bounds() -> None:
    with pytest.raises(GenesisError, match="must fit 64 bits"):
        members(a=2**64).number("a")
    with pytest.raises(GenesisError, match="must be at least 1"):
        members(a=0).number("a", minimum=1)
    with pytest.raises(GenesisError, match="must be at least 0"):
        members(a=-1).plain_number("a")


def test_hexadecimal_numbers_need_no_prefix_and_plain_numbers_no_quotes() -> None:
    assert members(nonce="42").hex_number("nonce") == 0x42
    assert members(nonce="0x42").hex_number("nonce") == 0x42
    assert members(nonce=42).hex_number("nonce") == 42
    with pytest.raises(GenesisError, match="must be a JSON number"):
        members(berlinBlock="0").plain_number("berlinBlock")


def test_null_counts_as_absent() -> None:
    nothing = members(a=None)
    assert nothing.number("a") is None
    assert nothing.child("a") is None
    assert nothing.children("a") == []
    assert nothing.flag("a") is False
    assert not nothing.has("a")


def test_flags_may_be_written_as_text() -> None:
    assert members(a=True).flag("a") is True
    assert members(a="False").flag("a") is False
    with pytest.raises(GenesisError, match="must be true or false"):
        members(a=1).flag("a")


def test_blank_addresses_count_as_absent() -> None:
    assert members(a=" ").address("a") is None
    assert members(a="0x" + "ab" * 20).address("a") == b"\xab" * 20
    assert members(a="0xabcd").address("a") == bytes(18) + b"\xab\xcd"
    with pytest.raises(GenesisError, match="must have 20 bytes and has 21"):
        members(a="0x" + "ab" * 21).address("a")


def test_an_unread_member_is_unknown_with_its_path_and_spelling() -> None:
    value, _ = parse_json('{"Known": 1, "Odd": 2, "inner": {"Known": 1, "Strange": 2}, "list": [{"X": 1}]}')
    top = GenesisObject(value)
    top.get("known")
    inner = top.child("inner")
    assert inner is not None
    inner.get("known")
    top.children("list")
    assert top.unknown() == ["Odd", "inner.Strange", "list[0].X"]


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(GenesisError) as caught:
        members(extraData="0x" + "g" * 100_000).data("extraData")
    assert len(str(caught.value)) < 300


def test_short_addresses_are_padded_as_besu_does() -> None:
    assert parse_address_lenient("0x1234") == bytes(18) + b"\x12\x34"
    assert parse_address_lenient("7") == bytes(19) + b"\x07"
    for wrong in ("", "0x", "0x" + "1" * 41, "xyz"):
        with pytest.raises(HexError):
            parse_address_lenient(wrong)
