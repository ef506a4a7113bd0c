"""Requests are decoded strictly and within bounds."""

from __future__ import annotations

import pytest

from ophion.errors import DecodeError
from ophion.peers.snap.messages import (
    MAX_KEY,
    MAX_LOOKUPS,
    MAX_PATH_ITEMS,
    Code,
    GetAccountRange,
    GetByteCodes,
    GetStorageRanges,
    GetTrieNodes,
    Request,
    decode_request,
    encode_request,
    response_id,
)
from ophion.primitives import rlp
from ophion.primitives.types import ZERO_HASH

A, B, C = (bytes([letter]) * 32 for letter in b"abc")


def test_requests_are_decoded() -> None:
    assert decode_request(Code.GET_ACCOUNT_RANGE, rlp.encode([7, A, B, C, 500])) == GetAccountRange(7, A, B, C, 500)
    assert decode_request(Code.GET_STORAGE_RANGES, rlp.encode([7, A, [B, C], b"", b"", 500])) == GetStorageRanges(
        7, A, [B, C], ZERO_HASH, MAX_KEY, 500
    )
    assert decode_request(Code.GET_STORAGE_RANGES, rlp.encode([7, A, [B], B, C, 0])) == GetStorageRanges(
        7, A, [B], B, C, 0
    )
    assert decode_request(Code.GET_BYTE_CODES, rlp.encode([7, [A], 1])) == GetByteCodes(7, [A], 1)
    paths = [[b"\0"], [B, b"\0", b"\x11"]]
    assert decode_request(Code.GET_TRIE_NODES, rlp.encode([7, A, paths, 9])) == GetTrieNodes(7, A, paths, 9)


@pytest.mark.parametrize(
    ("code", "request_"),
    [
        (Code.GET_ACCOUNT_RANGE, GetAccountRange(7, A, B, C, 500)),
        (Code.GET_STORAGE_RANGES, GetStorageRanges(1 << 60, A, [B, C], ZERO_HASH, MAX_KEY, 0)),
        (Code.GET_BYTE_CODES, GetByteCodes(0, [A, C], 1)),
        (Code.GET_TRIE_NODES, GetTrieNodes(7, A, [[b"\0"], [B, b"\0", b"\x11"]], 9)),
    ],
)
def test_an_encoded_request_is_the_same_request(code: Code, request_: Request) -> None:
    assert decode_request(code, encode_request(request_)) == request_


def test_a_response_has_the_id_of_its_request() -> None:
    assert response_id(rlp.encode([7, [A], []]), Code.ACCOUNT_RANGE) == 7
    for wrong in (b"", b"\x80", b"\xc0", rlp.encode([bytes(9)]), rlp.encode([7]) + b"\0", rlp.encode([[7]])):
        with pytest.raises(DecodeError):
            response_id(wrong, Code.ACCOUNT_RANGE)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (Code.GET_ACCOUNT_RANGE, [7, A, B, C]),
        (Code.GET_ACCOUNT_RANGE, [7, A, B, C, 5, 5]),
        (Code.GET_ACCOUNT_RANGE, [7, A[1:], B, C, 5]),
        (Code.GET_ACCOUNT_RANGE, [b"\1" * 9, A, B, C, 5]),
        (Code.GET_ACCOUNT_RANGE, [7, A, B, C, b"\1" * 9]),
        (Code.GET_ACCOUNT_RANGE, [7, [], B, C, 5]),
        (Code.GET_STORAGE_RANGES, [7, A, B, b"", b"", 5]),
        (Code.GET_STORAGE_RANGES, [7, A, [B], b"\1", b"", 5]),
        (Code.GET_STORAGE_RANGES, [7, A, [B[1:]], b"", b"", 5]),
        (Code.GET_BYTE_CODES, [7, A, 1]),
        (Code.GET_TRIE_NODES, [7, A, A, 1]),
        (Code.GET_TRIE_NODES, [7, A, [A], 1]),
        (Code.GET_TRIE_NODES, [7, A, [[]], 1]),
        (Code.GET_TRIE_NODES, [7, A, [[[b"\0"]]], 1]),
        (Code.GET_TRIE_NODES, [7, A, [[b"\0" * 34]], 1]),
        (Code.GET_TRIE_NODES, [7, A, [[b"\0", b"\0"]], 1]),
        (Code.GET_TRIE_NODES, [7, A, [[b"\0"]] * (MAX_PATH_ITEMS // 2 + 1), 1]),
    ],
)
def test_malformed_requests_are_refused(code: Code, message: rlp.Item) -> None:
    with pytest.raises(DecodeError):
        decode_request(code, rlp.encode(message))


def test_lookups_above_the_limit_are_ignored() -> None:
    many = [A] * (MAX_LOOKUPS + 5)
    codes = decode_request(Code.GET_BYTE_CODES, rlp.encode([7, many, 1]))
    assert isinstance(codes, GetByteCodes)
    assert len(codes.hashes) == MAX_LOOKUPS
    slots = decode_request(Code.GET_STORAGE_RANGES, rlp.encode([7, A, many, b"", b"", 1]))
    assert isinstance(slots, GetStorageRanges)
    assert len(slots.accounts) == MAX_LOOKUPS
    paths = [[b"\0"]] * 10 + [[A] + [b"\0"] * MAX_LOOKUPS] + [[b"\0"]]
    nodes = decode_request(Code.GET_TRIE_NODES, rlp.encode([7, A, paths, 1]))
    assert isinstance(nodes, GetTrieNodes)
    assert [len(one) for one in nodes.paths] == [1] * 10 + [MAX_LOOKUPS - 10 + 1]


def test_labels_are_those_of_the_specification() -> None:
    assert (Code.GET_STORAGE_RANGES.label, Code.TRIE_NODES.label) == ("GetStorageRanges", "TrieNodes")
