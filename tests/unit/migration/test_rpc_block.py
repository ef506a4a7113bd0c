"""JSON blocks that cannot be encoded are refused with the name of the JSON key."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.errors import DecodeError
from ophion.migration.rpc_block import encode_json_header, encode_json_transaction
from ophion.primitives import rlp

LEGACY: dict[str, Any] = {
    "nonce": "0x1",
    "gas": "0x5208",
    "gasPrice": "0x0",
    "value": "0x2",
    "to": None,
    "input": "0x6001",
    "v": "0x1b",
    "r": "0x03",
    "s": "0x4",
}


def test_a_transaction_without_a_type_is_legacy() -> None:
    expected = rlp.encode([1, 0, 0x5208, b"", 2, b"\x60\x01", 0x1B, 3, 4])
    assert encode_json_transaction(LEGACY) == expected
    assert encode_json_transaction({**LEGACY, "type": "0x0"}) == expected


def test_a_typed_transaction_may_have_its_parity_in_v() -> None:
    typed = {**LEGACY, "type": "0x1", "chainId": "0x539", "v": "0x1", "accessList": []}
    fields = rlp.encode([0x539, 1, 0, 0x5208, b"", 2, b"\x60\x01", [], 1, 3, 4])
    assert encode_json_transaction(typed) == rlp.encode_bytes(b"\x01" + fields)
    assert encode_json_transaction({**typed, "yParity": "0x1", "v": "0x25"}) == rlp.encode_bytes(b"\x01" + fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nonce": None}, "no member nonce"),
        ({"gas": "many"}, "gas is not a number"),
        ({"input": 3}, "input is not hexadecimal"),
        ({"type": "0x7e", "chainId": "0x1"}, "transaction type 126"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        encode_json_transaction({**LEGACY, **change})
    with pytest.raises(DecodeError, match="no member parentHash"):
        encode_json_header({})
