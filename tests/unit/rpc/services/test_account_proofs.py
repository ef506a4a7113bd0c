"""Tests proofs of many slots, in batches."""

from __future__ import annotations

import json

import pytest

from ophion.errors import RpcError
from ophion.primitives.types import BlockTag
from ophion.rpc.services import account_proofs
from ophion.rpc.services.account_proofs import proof
from tests.unit.rpc.interface import Interface

CONTRACT = bytes.fromhex("6295ee1b4f6dd65047762f924ecd367c17eabf8f")


def test_portions_give_what_a_single_look_gives(sample: Interface, monkeypatch: pytest.MonkeyPatch) -> None:
    view = sample.context.queries.view(BlockTag.LATEST)
    assert view is not None
    slots = [(hex(number), number.to_bytes(32, "big")) for number in range(40)]
    whole = json.loads(proof(view, CONTRACT, slots, 2**30))
    monkeypatch.setattr(account_proofs, "_PORTION", 7)
    assert json.loads(proof(view, CONTRACT, slots, 2**30)) == whole
    assert [entry["key"] for entry in whole["storageProof"]] == [name for name, _ in slots]
    assert any(int(entry["value"], 16) for entry in whole["storageProof"])


def test_an_answer_has_a_limit(sample: Interface) -> None:
    view = sample.context.queries.view(BlockTag.LATEST)
    assert view is not None
    slots = [(hex(number), number.to_bytes(32, "big")) for number in range(1000)]
    with pytest.raises(RpcError, match="maximum RPC response size"):
        proof(view, CONTRACT, slots, 10_000)
    assert json.loads(proof(view, CONTRACT, [], 10_000))["storageProof"] == []
