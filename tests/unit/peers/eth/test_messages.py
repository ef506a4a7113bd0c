"""Tests eth messages against the vectors of networking.md 7.3 and against arbitrary bytes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.errors import DecodeError
from ophion.peers.eth import messages
from ophion.peers.eth.messages import BlockRange, Code, GetHeaders, TransactionHashes
from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError

ONES, TWOS = b"\x11" * 32, b"\x22" * 32
hashes = st.binary(min_size=32, max_size=32)
words = st.integers(0, 2**64 - 1)


def test_headers_by_hash() -> None:
    encoded = bytes.fromhex("e601e4a0") + TWOS + bytes.fromhex("018080")
    assert GetHeaders(TWOS, 1).encode(1) == encoded
    request_id, body = messages.decode_get(encoded, Code.GET_BLOCK_HEADERS)
    assert (request_id, GetHeaders.decode(body)) == (1, GetHeaders(TWOS, 1))


def test_headers_by_number() -> None:
    encoded = bytes.fromhex("c907c78203e881c08080")
    assert GetHeaders(1000, 192).encode(7) == encoded
    request_id, body = messages.decode_get(encoded, Code.GET_BLOCK_HEADERS)
    assert (request_id, GetHeaders.decode(body)) == (7, GetHeaders(1000, 192))


def test_new_block_hashes() -> None:
    encoded = bytes.fromhex("e5e4a0") + TWOS + bytes.fromhex("8203e8")
    assert messages.encode_new_hashes([(TWOS, 1000)]) == encoded
    assert messages.decode_new_hashes(encoded) == [(TWOS, 1000)]


def test_transaction_hashes() -> None:
    encoded = bytes.fromhex("f84b820002c36e81b4f842a0") + ONES + b"\xa0" + TWOS
    message = TransactionHashes(b"\x00\x02", [110, 180], [ONES, TWOS])
    assert message.encode() == encoded
    assert TransactionHashes.decode(encoded) == message


def test_block_range() -> None:
    encoded = bytes.fromhex("e5808203e8a0") + TWOS
    assert BlockRange(0, 1000, TWOS).encode() == encoded
    assert BlockRange.decode(encoded) == BlockRange(0, 1000, TWOS)


@given(start=st.one_of(words, hashes), limit=words, skip=words, reverse=st.booleans(), request_id=words)
def test_requests_for_headers_round_trip(
    start: int | bytes, limit: int, skip: int, reverse: bool, request_id: int
) -> None:
    request = GetHeaders(start, limit, skip, reverse)
    found_id, body = messages.decode_get(request.encode(request_id), Code.GET_BLOCK_HEADERS)
    assert (found_id, GetHeaders.decode(body)) == (request_id, request)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**32 - 1), hashes), max_size=20))
def test_announcements_round_trip(entries: list[tuple[int, int, bytes]]) -> None:
    message = TransactionHashes(
        bytes(kind for kind, _, _ in entries), [size for _, size, _ in entries], [one for _, _, one in entries]
    )
    assert TransactionHashes.decode(message.encode()) == message


def test_types_sizes_and_hashes_must_be_equally_many() -> None:
    for types, sizes, listed in ((b"\x00", [1, 2], [ONES]), (b"", [1], [ONES]), (b"\x00\x00", [1, 2], [ONES])):
        with pytest.raises(RlpError, match="differ in number"):
            TransactionHashes.decode(rlp.encode([types, sizes, listed]))


def test_a_block_of_too_much_difficulty_is_refused() -> None:
    block = rlp.encode([[], [], []])
    encoded, difficulty = messages.decode_new_block(messages.encode_new_block(block, 2**100 - 1))
    assert encoded.message[encoded.start : encoded.end] == block
    assert (encoded.size, encoded.header_bytes, difficulty) == (len(block), 1, 2**100 - 1)
    with pytest.raises(RlpError, match="total difficulty"):
        messages.decode_new_block(messages.encode_new_block(block, 2**100))


@pytest.mark.parametrize("value", [[], [b""], [[], 1, 1], [[], b"\x01" * 50], [[], []]])
def test_a_new_block_is_a_block_and_a_difficulty(value: rlp.Encodable) -> None:
    with pytest.raises(RlpError):
        messages.decode_new_block(rlp.encode(value))


@given(st.binary(max_size=300))
def test_no_bytes_break_the_decoders(data: bytes) -> None:
    for decode in (
        GetHeaders.decode,
        BlockRange.decode,
        TransactionHashes.decode,
        messages.decode_new_hashes,
        messages.decode_new_block,
    ):
        with contextlib.suppress(DecodeError):
            decode(data)


items = st.recursive(st.binary(max_size=40), lambda inner: st.lists(inner, max_size=4), max_leaves=12)


@given(items)
def test_no_well_formed_value_breaks_the_decoders(value: rlp.Item) -> None:
    test_no_bytes_break_the_decoders.hypothesis.inner_test(rlp.encode(value))  # type: ignore[attr-defined]


def test_every_request_names_its_answer_and_every_short_message_its_size() -> None:
    assert all(
        answer.label in ("BlockHeaders", "BlockBodies", "PooledTransactions", "Receipts", "NodeData")
        for answer in messages.ANSWERS.values()
    )
    assert Code.NEW_POOLED_TRANSACTION_HASHES.label == "NewPooledTransactionHashes"
    assert set(messages.MAX_BYTES) == set(Code)
    assert max(messages.MAX_BYTES.values()) == messages.MAX_MESSAGE


def test_an_announced_block_is_no_longer_than_its_gas_limit_allows() -> None:
    mib = 1024 * 1024
    assert [messages.max_block_bytes(gas) for gas in (0, 5_000, 4_700_000, 30_000_000, 2**53)] == [
        mib,
        mib,
        2 * mib,
        10 * mib,
        10 * mib,
    ]
