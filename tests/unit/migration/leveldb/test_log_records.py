"""Tests records of logs: chunks over several blocks, recycled logs, torn ends."""

from __future__ import annotations

import pytest

from ophion.errors import DecodeError
from ophion.migration.leveldb.log_records import read_batch, read_records

_BLOCK = 32768


def chunk(kind: int, data: bytes, log_number: int | None = None) -> bytes:
    extra = b"" if log_number is None else log_number.to_bytes(4, "little")
    return bytes(4) + len(data).to_bytes(2, "little") + bytes([kind]) + extra + data


def test_a_record_may_span_blocks() -> None:
    first = chunk(2, b"a" * (_BLOCK - 7))
    data = first + chunk(3, b"b" * (_BLOCK - 7)) + chunk(4, b"c" * 10) + chunk(1, b"next")
    whole, following = read_records(data)
    assert whole == b"a" * (_BLOCK - 7) + b"b" * (_BLOCK - 7) + b"c" * 10
    assert following == b"next"


def test_the_rest_of_a_block_may_be_empty() -> None:
    data = chunk(1, b"one").ljust(_BLOCK, b"\x00") + chunk(1, b"two")
    assert list(read_records(data)) == [b"one", b"two"]
    nearly = chunk(1, b"x" * (_BLOCK - 7 - 3))
    assert list(read_records(nearly.ljust(_BLOCK, b"\x00") + chunk(1, b"two")))[1] == b"two"


def test_records_of_an_earlier_log_end_a_recycled_one() -> None:
    data = chunk(5, b"new", 9) + chunk(5, b"old", 4)
    assert list(read_records(data, 9)) == [b"new"]


@pytest.mark.parametrize("end", [chunk(1, b"torn")[:-2], chunk(1, b"torn")[:6], chunk(2, b"first only"), b"\xff" * 20])
def test_a_torn_end_is_ignored(end: bytes) -> None:
    assert list(read_records(chunk(1, b"whole") + end)) == [b"whole"]


def test_a_batch_holds_writes_and_deletions() -> None:
    batch = bytes(12) + b"\x01\x01k\x02vv" + b"\x00\x01d" + b"\x03\x02ld" + b"\x12\x01s\x01w" + b"\x0f\x01a\x01b"
    assert list(read_batch(batch)) == [(b"k", b"vv"), (b"d", None), (b"s", b"w")]
    assert list(read_batch(b"short")) == []
    for damaged in (bytes(12) + b"\x01\x05k", bytes(12) + b"\x63", bytes(12) + b"\x01" + b"\xff" * 11):
        with pytest.raises(DecodeError):
            list(read_batch(damaged))
