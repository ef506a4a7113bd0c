"""Tests subscriptions to the receipts of named transactions."""

from __future__ import annotations

import pytest

from ophion.errors import RpcError
from ophion.rpc.services.receipt_subscriptions import ReceiptSubscriptions, named_hashes

HASHES = [number.to_bytes(32, "big") for number in range(5)]
NAMES = ["0x" + hash.hex() for hash in HASHES]
STRANGER = b"\xff" * 32


def receipt(place: int) -> bytes:
    return b'{"transactionIndex":"%#x"}' % place


def test_who_wants_the_same_is_found_together_and_nothing_else_is_read() -> None:
    asked = {
        "first": [HASHES[0]],
        "also": [HASHES[0], STRANGER],
        "some": [HASHES[4], HASHES[2]],
        "stranger": [STRANGER],
    }
    read = []

    def reading(place: int) -> bytes:
        read.append(place)
        return receipt(place)

    found = ReceiptSubscriptions(HASHES, [(who, frozenset(hashes)) for who, hashes in asked.items()], reading)
    assert found.wanted == {(0,): ["first", "also"], (2, 4): ["some"]}
    assert found.text((2, 4)) == b"[%b,%b]" % (receipt(2), receipt(4))
    assert sorted(read) == [0, 2, 4]


def test_a_block_without_any() -> None:
    assert ReceiptSubscriptions([], [("one", frozenset(HASHES))], receipt).wanted == {}


@pytest.mark.parametrize("options", [None, {}, [], {"transactionHashes": []}, {"transactionHashes": None}])
def test_nothing_named_is_all(options: object) -> None:
    assert named_hashes(options) is None


def test_names_are_hashes_and_not_too_many() -> None:
    assert named_hashes({"transactionHashes": NAMES}) == frozenset(HASHES)
    assert named_hashes(NAMES) == frozenset(HASHES)
    for wrong in ("0x1", {"transactionHashes": "0x1"}, ["0x12"], NAMES * 41):
        with pytest.raises(RpcError):
            named_hashes(wrong)
