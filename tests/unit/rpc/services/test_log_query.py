"""Tests filter objects (json-rpc.md 3.5)."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.errors import RpcError
from ophion.primitives.types import BlockTag
from ophion.rpc.services.log_query import LogQuery, decode_log_query, decode_ranged_or_hashed

A, B = b"\xaa" * 32, b"\xbb" * 32
HEX_A, HEX_B = "0x" + A.hex(), "0x" + B.hex()
ADDRESS = "0x" + "11" * 20


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        (None, ()),
        ([], ()),
        (HEX_A, ((A,),)),
        ([HEX_A], ((A,),)),
        ([None, HEX_B], (None, (B,))),
        ([[HEX_A, HEX_B]], ((A, B),)),
        ([[None], [HEX_B]], (None, (B,))),
        ([[]], (None,)),
        ([[HEX_A, None]], (None,)),
    ],
)
def test_topics_are_read_by_position(topics: Any, expected: Any) -> None:
    assert decode_log_query({"topics": topics}).topics == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [(None, ()), ([], ()), (ADDRESS, (b"\x11" * 20,)), ([ADDRESS, ADDRESS], (b"\x11" * 20,) * 2)],
)
def test_an_address_may_be_one_many_or_any(address: Any, expected: Any) -> None:
    assert decode_log_query({"address": address}).addresses == expected


def test_the_range_defaults_to_the_newest_block_and_unknown_members_are_ignored() -> None:
    assert decode_log_query({"limit": 5}) == LogQuery(BlockTag.LATEST, BlockTag.LATEST)
    assert decode_log_query({"fromBlock": "0x1", "toBlock": "12"}) == LogQuery(1, 12)


@pytest.mark.parametrize("name", ["blockHash", "blockhash"])
def test_a_block_hash_excludes_a_range(name: str) -> None:
    assert decode_ranged_or_hashed({name: HEX_A}).block_hash == A
    for end in ("fromBlock", "toBlock"):
        with pytest.raises(RpcError, match="Invalid params"):
            decode_ranged_or_hashed({name: HEX_A, end: "0x1"})


@pytest.mark.parametrize(
    "value",
    [5, "x", [], {"address": "foo"}, {"topics": 5}, {"topics": [5]}, {"topics": ["0x1"]}, {"topics": [["0x1", None]]}],
)
def test_other_forms_are_invalid_params(value: Any) -> None:
    with pytest.raises(RpcError, match="Invalid params"):
        decode_log_query(value)


def test_only_a_numeric_end_closes_a_filter() -> None:
    assert LogQuery(to_block=5).takes_block(5)
    assert not LogQuery(to_block=5).takes_block(6)
    assert LogQuery(from_block=9, to_block=BlockTag.LATEST).takes_block(1)
