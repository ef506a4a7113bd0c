"""Tests accepted and refused input of the decoders (json-rpc.md 3.1, 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.errors import RpcError
from ophion.primitives.types import BlockTag
from ophion.rpc.schema.wire_types import (
    CanonicalHash,
    decode_address,
    decode_block,
    decode_block_number,
    decode_boolean,
    decode_data,
    decode_gas,
    decode_hash,
    decode_index,
    decode_integer,
    decode_quantity,
    decode_slot,
    decode_text,
    encode_data,
    encode_json,
    encode_quantity,
    encode_spliced,
    optional,
)

HASH = "ab" * 32

ACCEPTED: list[tuple[Callable[[Any], Any], Any, Any]] = [
    (decode_address, "0x" + "Ab" * 20, b"\xab" * 20),
    (decode_address, "ab" * 20, b"\xab" * 20),
    (decode_address, "0x0", bytes(20)),
    (decode_address, "0x", bytes(20)),
    (decode_address, "abc", bytes(18) + b"\x0a\xbc"),
    (decode_hash, "0x" + HASH, b"\xab" * 32),
    (decode_hash, HASH.upper(), b"\xab" * 32),
    (decode_slot, "0x4", bytes(31) + b"\x04"),
    (decode_slot, HASH, b"\xab" * 32),
    (decode_data, "0x", b""),
    (decode_data, "", b""),
    (decode_data, "0x00ff", b"\x00\xff"),
    (decode_data, "00ff", b"\x00\xff"),
    (decode_quantity, "0x10", 16),
    (decode_quantity, "0x010", 16),
    (decode_quantity, 16, 16),
    (decode_gas, "100", 100),
    (decode_gas, "0x64", 100),
    (decode_index, "0x2", 2),
    (decode_index, "2", 2),
    (decode_index, "017", 15),
    (decode_index, 2, 2),
    (decode_index, "2147483647", 2**31 - 1),
    (decode_integer, 7, 7),
    (decode_integer, "7", 7),
    (decode_integer, "0x7", 7),
    (decode_boolean, True, True),
    (decode_boolean, "false", False),
    (decode_text, "x", "x"),
    (decode_block_number, "latest", BlockTag.LATEST),
    (decode_block_number, "PENDING", BlockTag.PENDING),
    (decode_block_number, "Finalized", BlockTag.FINALIZED),
    (decode_block_number, "82990", 82990),
    (decode_block, "0x" + "0" * 61 + "7", 7),
    (decode_block_number, "0x10", 16),
    (decode_block_number, "#10", 16),
    (decode_block_number, "010", 8),
    (decode_block_number, "-0x10", -16),
    (decode_block_number, "+5", 5),
    (decode_block_number, 5, 5),
    (decode_block_number, "0x7fffffffffffffff", 2**63 - 1),
    (decode_block, "latest", BlockTag.LATEST),
    (decode_block, "Latest", BlockTag.LATEST),
    (decode_block, "0x" + HASH, b"\xab" * 32),
    (decode_block, {"blockHash": "0x" + HASH}, b"\xab" * 32),
    (decode_block, {"blockHash": "0x" + HASH, "requireCanonical": False}, b"\xab" * 32),
    (decode_block, {"blockHash": "0x" + HASH, "requireCanonical": True}, CanonicalHash(b"\xab" * 32)),
    (decode_block, {"blockNumber": "0x5"}, 5),
    (decode_block, {"blockNumber": "safe"}, BlockTag.SAFE),
]

REFUSED: list[tuple[Callable[[Any], Any], Any]] = [
    (decode_address, "0x" + "ab" * 21),
    (decode_address, "0X" + "ab" * 20),
    (decode_address, "0x" + "zz" * 20),
    (decode_address, "0x" + "ab" * 19 + " a"),
    (decode_address, "foo"),
    (decode_address, 5),
    (decode_address, None),
    (decode_hash, "0x0"),
    (decode_hash, "0x" + HASH + "ab"),
    (decode_hash, "0x" + "g" * 64),
    (decode_slot, "0x" + "0" * 65),
    (decode_slot, "0xg"),
    (decode_data, "0x1"),
    (decode_data, "0xé0"),
    (decode_data, ["0x"]),
    (decode_quantity, "16"),
    (decode_quantity, "0x"),
    (decode_quantity, -1),
    (decode_quantity, True),
    (decode_quantity, "0x" + "f" * 65),
    (decode_quantity, 1.5),
    (decode_index, "0x0L"),
    (decode_index, "-1"),
    (decode_index, -1),
    (decode_index, "2147483648"),
    (decode_index, True),
    (decode_integer, "x"),
    (decode_integer, True),
    (decode_boolean, 1),
    (decode_boolean, "yes"),
    (decode_boolean, None),
    (decode_text, 5),
    (decode_block_number, "0x8000000000000000"),
    (decode_block_number, "newest"),
    (decode_block_number, ""),
    (decode_block_number, "--1"),
    (decode_block_number, 2**70),
    (decode_block_number, True),
    (decode_block_number, "0x" + HASH),
    (decode_block, {"blockHash": "0x" + HASH, "blockNumber": "0x1"}),
    (decode_block, {}),
    (decode_block, {"blockHash": "0x1"}),
    (decode_block, [1]),
    (decode_block, None),
]


@pytest.mark.parametrize(("decode", "given", "expected"), ACCEPTED)
def test_accepted_forms_are_read(decode: Callable[[Any], Any], given: Any, expected: Any) -> None:
    assert decode(given) == expected


@pytest.mark.parametrize(("decode", "given"), REFUSED)
def test_other_forms_are_invalid_params(decode: Callable[[Any], Any], given: Any) -> None:
    with pytest.raises(RpcError) as caught:
        decode(given)
    assert (caught.value.code, caught.value.message) == (-32602, "Invalid params")


@given(st.sampled_from(sorted({decode for decode, _ in REFUSED}, key=str)), st.data())
def test_no_json_value_makes_a_decoder_fail_otherwise(decode: Callable[[Any], Any], data: st.DataObject) -> None:
    scalar = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70)
    hexlike = st.text("0123456789abcdefxX# -", max_size=70)
    value = data.draw(scalar | hexlike | st.lists(scalar, max_size=2) | st.dictionaries(st.text(max_size=12), scalar))
    try:
        decode(value)
    except RpcError as error:
        assert error.code == -32602


def test_results_are_written_in_their_canonical_form() -> None:
    assert encode_quantity(0) == b'"0x0"'
    assert encode_quantity(2**200) == b'"0x1' + b"0" * 50 + b'"'
    assert encode_data(b"") == b'"0x"'
    assert encode_data(b"\x00\x01") == b'"0x0001"'
    assert encode_json({"a": [None, True]}) == b'{"a":[null,true]}'
    assert encode_spliced(b"[1]") == b"[1]"
    assert optional(encode_quantity)(None) == b"null"
    assert optional(encode_quantity)(1) == b'"0x1"'
