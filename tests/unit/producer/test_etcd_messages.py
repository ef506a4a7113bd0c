"""Tests the messages of etcd with bytes of a real etcd, with an encoder of replies, and with malformed replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.errors import DecodeError
from ophion.producer.etcd_messages import (
    Entry,
    TransactionReply,
    decode_range_reply,
    decode_transaction_reply,
    encode_range,
    encode_transaction,
)

HEADER = bytes.fromhex("0a19088498f6c6c5f8fefd07108a868f8a86bea093cf0118042002")
"""Header of a reply of etcd 3.4 at revision 4."""
REVISIONS = st.integers(1, 2**63 - 1)


def _varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes((number & 127 | 128,))
        number >>= 7
    return found + bytes((number,))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _header(revision: int) -> bytes:
    return _bytes(1, _number(1, 2**64 - 1) + _number(2, 7) + _number(3, revision) + _number(4, 2))


def _range(revision: int, entry: Entry | None) -> bytes:
    if entry is None:
        return _header(revision)
    content = (
        _bytes(1, b"key") + _number(2, 1) + _number(3, entry.mod_revision) + _number(4, 9) + _bytes(5, entry.value)
    )
    return _header(revision) + _bytes(2, content) + _number(4, 1)


def _failure(revision: int, entry: Entry | None) -> bytes:
    return _header(revision) + _bytes(3, _bytes(1, _range(revision, entry)))


def test_requests() -> None:
    assert encode_range(b"key") == bytes.fromhex("0a036b6579")
    compare, read = "0a0a 1002 1a036b6579 30ac02 0a0c 1003 1a036b6579 3a03313233", "1a07 0a05 0a036b6579"
    puts = "1209 1207 0a0161 12023162", "1207 1205 0a0162 1200"
    expected = bytes.fromhex(compare + "".join(puts) + read)
    assert encode_transaction(b"key", Entry(b"123", 300), [(b"a", b"1b"), (b"b", b"")]) == expected
    assert encode_transaction(b"key", None, []) == bytes.fromhex("0a09 1002 1a036b6579 3000" + read), "the key is new"


def test_replies_of_etcd() -> None:
    put = "1a06 1204 0a02 1804"
    assert decode_transaction_reply(HEADER + bytes.fromhex("1001" + 2 * put)) == TransactionReply(4, True, None)
    key = "12 10 0a016b 1002 1804 2001 2a05 70726f6f66"
    read = "1a 18 0a 16 0a021804" + key + "2001"
    assert decode_range_reply(HEADER + bytes.fromhex(key + "2001")) == Entry(b"proof", 4)
    assert decode_transaction_reply(HEADER + bytes.fromhex(read)) == TransactionReply(4, False, Entry(b"proof", 4))
    assert decode_range_reply(HEADER) is None
    missing = HEADER + bytes.fromhex("1a06 0a04 0a021804")
    assert decode_transaction_reply(missing) == TransactionReply(4, False, None)


@given(st.binary(max_size=300), REVISIONS, REVISIONS)
def test_entries_are_read(value: bytes, revision: int, mod_revision: int) -> None:
    entry = Entry(value, mod_revision)
    assert decode_range_reply(_range(revision, entry)) == entry
    assert decode_transaction_reply(_failure(revision, entry)) == TransactionReply(revision, False, entry)
    assert decode_transaction_reply(_failure(revision, None)) == TransactionReply(revision, False, None)
    success = _header(revision) + _number(2, 1) + _bytes(3, _bytes(2, _header(revision)))
    assert decode_transaction_reply(success) == TransactionReply(revision, True, None)


@given(st.integers(16, 10**6), st.integers(0, 2**64 - 1), st.binary(max_size=20))
def test_unknown_fields_are_skipped(field: int, number: int, content: bytes) -> None:
    unknown = _number(field, number) + _bytes(field + 1, content)
    fixed = _varint(field << 3 | 1) + bytes(8) + _varint(field << 3 | 5) + bytes(4)
    known = _range(5, Entry(b"x", 4))
    assert decode_range_reply(unknown + known + fixed) == Entry(b"x", 4)


@given(st.binary(max_size=60), REVISIONS)
def test_a_part_of_a_reply_is_not_another_reply(value: bytes, revision: int) -> None:
    """A reply that is cut somewhere never tells that the transaction has succeeded, nor another value."""
    entry = Entry(value, revision)
    whole = _failure(revision, entry)
    for end in range(len(whole)):
        with pytest.raises(DecodeError):
            decode_transaction_reply(whole[:end])
    whole = _header(revision) + _number(2, 1)
    for end in range(len(whole)):
        with pytest.raises(DecodeError):
            decode_transaction_reply(whole[:end])


@given(st.binary(max_size=100))
def test_any_bytes_are_a_reply_or_an_error(data: bytes) -> None:
    for decode in (decode_transaction_reply, decode_range_reply):
        try:
            decode(data)
        except DecodeError:
            continue


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "revision is missing"),
        (_number(2, 1), "revision is missing"),
        (_bytes(1, b"") + _number(2, 1), "revision is missing"),
        (_header(0) + _number(2, 1), "revision is missing"),
        (_header(2**63) + _number(2, 1), "out of range"),
        (_number(1, 5) + _number(2, 1), "a number instead of bytes"),
        (_bytes(1, _bytes(3, b"x")) + _number(2, 1), "not a number"),
        (_header(5) + _bytes(2, b"\x01"), "not a number"),
        (_header(5), "has not read the key"),
        (_header(5) + _bytes(3, _bytes(2, b"")), "has not read the key"),
        (_header(5) + 2 * _bytes(3, _bytes(1, _header(5))), "has not read the key"),
        (_failure(5, Entry(b"x", 0)), "mod_revision is missing"),
        (_failure(5, Entry(b"x", 2**63)), "out of range"),
        (_header(5) + b"\x13", "wire type 3"),
        (_header(5) + b"\x12\x05abcd", "incomplete"),
        (_header(5) + b"\x11" + bytes(7), "incomplete"),
        (_header(5) + b"\x10" + b"\x80" * 10 + b"\x01", "incomplete or too long"),
        (_header(5) + b"\x12" + b"\xff" * 9 + b"\x01", "incomplete"),
        (_header(5) + _number(9, 1) * 100, "too many fields"),
        (_header(5) + _bytes(3, b"\x08\x01" * 100), "too many fields"),
        (_header(5) + bytes(2_000_000), "too many fields"),
    ],
)
def test_malformed_replies(data: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        decode_transaction_reply(data)
