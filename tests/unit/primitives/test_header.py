"""Tests headers: every field, every number of optional fields, strict decoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.rlp import RlpError
from ophion.primitives.types import EMPTY_OMMERS_HASH, EMPTY_TRIE_ROOT

PLAIN = Header(
    parent_hash=bytes(31) + b"\x01",
    ommers_hash=EMPTY_OMMERS_HASH,
    coinbase=bytes(19) + b"\x02",
    state_root=bytes(31) + b"\x03",
    transactions_root=EMPTY_TRIE_ROOT,
    receipts_root=EMPTY_TRIE_ROOT,
    logs_bloom=bytes(256),
    difficulty=2**70,
    number=7,
    gas_limit=30_000_000,
    gas_used=21_000,
    timestamp=1_700_000_000,
    extra_data=b"ophion",
    mix_hash=bytes(32),
    nonce=bytes(7) + b"\x09",
)
TAIL = {
    "base_fee_per_gas": 7,
    "withdrawals_root": EMPTY_TRIE_ROOT,
    "blob_gas_used": 131072,
    "excess_blob_gas": 0,
    "parent_beacon_block_root": bytes(32),
    "requests_hash": bytes(32),
    "block_access_list_hash": bytes(32),
    "slot_number": 12,
}

hashes = st.binary(min_size=32, max_size=32)
u64 = st.integers(0, 2**64 - 1)
headers = st.builds(
    Header,
    hashes,
    hashes,
    st.binary(min_size=20, max_size=20),
    hashes,
    hashes,
    hashes,
    st.binary(min_size=256, max_size=256),
    st.integers(0, 2**256 - 1),
    u64,
    u64,
    u64,
    u64,
    st.binary(max_size=300),
    hashes,
    st.binary(min_size=8, max_size=8),
)


@pytest.mark.parametrize("length", range(len(TAIL) + 1))
def test_a_header_with_any_tail_length_survives_a_round_trip(length: int) -> None:
    header = replace(PLAIN, **dict(list(TAIL.items())[:length]))
    encoded = header.encode()
    assert Header.decode(encoded) == header
    assert len(rlp.decode_list(encoded)) == 15 + length


@given(headers)
def test_any_header_survives_a_round_trip(header: Header) -> None:
    assert Header.decode(header.encode()) == header


def test_a_header_with_blob_gas_right_after_the_base_fee_survives_a_round_trip() -> None:
    """Besu 24.5.2 and later omit the withdrawals root, so blob gas follows the base fee (consensus.md 8)."""
    header = replace(PLAIN, base_fee_per_gas=7, withdrawals_root=None, blob_gas_used=0, excess_blob_gas=0)
    fields = rlp.decode_list(header.encode())
    assert len(fields) == 18
    assert fields[-3:] == [b"\x07", b"", b""]
    assert Header.decode(header.encode()) == header
    with pytest.raises(RlpError, match="blobGasUsed is wider than 64 bits"):
        Header.from_items([*fields[:16], bytes([1] * 31), b""])
    with pytest.raises(RlpError, match="withdrawalsRoot has 0 bytes instead of 32"):
        Header.from_items([*fields, b""])


def test_field_order_is_the_order_of_the_rlp() -> None:
    items = rlp.decode_list(replace(PLAIN, **TAIL).encode())
    names = [field.name for field in fields(Header)]
    assert items[names.index("difficulty")] == rlp.scalar(2**70)
    assert items[names.index("nonce")] == PLAIN.nonce
    assert items[names.index("slot_number")] == b"\x0c"


@pytest.mark.parametrize(
    ("index", "value", "problem"),
    [
        (0, bytes(31), "parentHash has 31 bytes"),
        (2, bytes(32), "coinbase has 32 bytes"),
        (6, b"", "logsBloom has 0 bytes"),
        (7, bytes(33), "difficulty is wider"),
        (8, b"\x00\x01", "number has leading zeros"),
        (9, b"\xff" * 9, "gasLimit is wider than 64 bits"),
        (11, [], "timestamp is a list"),
        (14, bytes(7), "nonce has 7 bytes"),
        (15, b"\x00", "baseFeePerGas has leading zeros"),
        (20, bytes(4), "requestsHash has 4 bytes"),
    ],
)
def test_a_wrong_field_is_named(index: int, value: rlp.Item, problem: str) -> None:
    items = rlp.decode_list(replace(PLAIN, **TAIL).encode())
    items[index] = value
    with pytest.raises(RlpError, match=problem):
        Header.decode(rlp.encode(items))


@pytest.mark.parametrize("count", [0, 14, 24])
def test_a_wrong_number_of_fields_is_refused(count: int) -> None:
    with pytest.raises(RlpError, match=f"of {count} fields"):
        Header.decode(rlp.encode([b""] * count))


@given(st.data())
def test_a_damaged_header_gives_one_error_or_another_header(data: st.DataObject) -> None:
    encoded = bytearray(replace(PLAIN, **TAIL).encode())
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position] ^= data.draw(st.integers(1, 255))
    try:
        header = Header.decode(bytes(encoded))
    except RlpError:
        return
    assert header.encode() == bytes(encoded)


def test_a_byte_string_is_no_header() -> None:
    with pytest.raises(RlpError, match="byte string"):
        Header.decode(b"\x80")


def test_a_hashed_header_shows_number_and_hash() -> None:
    hashed = HashedHeader(PLAIN, b"\xab" * 32)
    assert str(hashed) == f"7 (0x{'ab' * 32})"
    assert (hashed.number, hashed.parent_hash, hashed.timestamp) == (7, PLAIN.parent_hash, PLAIN.timestamp)
