"""Who has named which receipts."""

from __future__ import annotations

import json

import pytest

from ophion.errors import RpcError
from ophion.rpc.questions.named_receipts import NamedReceipts, named_hashes

RECEIPTS = [{"transactionHash": f"0x{number:064x}", "status": "0x1", "logs": [{}, {}]} for number in range(5)]
NAMES = [str(receipt["transactionHash"]) for receipt in RECEIPTS]


def test_who_wants_the_same_is_found_together() -> None:
    asked = {
        "first": [NAMES[0]],
        "also": [NAMES[0], "0x" + "ff" * 32],
        "some": [NAMES[4], NAMES[2]],
        "stranger": ["0x" + "ff" * 32],
    }
    found = NamedReceipts(json.dumps(RECEIPTS).encode(), [(who, frozenset(hashes)) for who, hashes in asked.items()])
    assert found.wanted == {(NAMES[0],): ["first", "also"], (NAMES[2], NAMES[4]): ["some"]}
    assert json.loads(found.text((NAMES[2], NAMES[4]))) == [RECEIPTS[2], RECEIPTS[4]]


def test_a_block_without_any() -> None:
    assert NamedReceipts(b"[]", [("one", frozenset(NAMES))]).wanted == {}


@pytest.mark.parametrize("options", [None, {}, [], {"transactionHashes": []}, {"transactionHashes": None}])
def test_nothing_named_is_all(options: object) -> None:
    assert named_hashes(options) is None


def test_names_are_hashes_and_not_too_many() -> None:
    assert named_hashes({"transactionHashes": NAMES}) == frozenset(NAMES)
    assert named_hashes(NAMES) == frozenset(NAMES)
    for wrong in ("0x1", {"transactionHashes": "0x1"}, ["0x12"], NAMES * 41):
        with pytest.raises(RpcError):
            named_hashes(wrong)
