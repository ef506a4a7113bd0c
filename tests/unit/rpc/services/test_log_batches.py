"""Tests logs of a block in batches, and splitting of JSON lists."""

from __future__ import annotations

import json

import pytest

from ophion.primitives.types import Hash32
from ophion.rpc.services import log_batches
from ophion.rpc.services.log_batches import logs_of, portion
from ophion.rpc.services.log_query import LogQuery
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.contracts import many_logs
from tests.unit.rpc.interface import Interface

COUNT = 20


@pytest.fixture
def block(dev: Interface) -> Hash32:
    sent = legacy_transaction(DEV_KEYS[1], 0, to=None, gas=200_000, data=many_logs(COUNT))
    header, _ = dev.run(dev.node.mine(sent))
    return header.hash


def test_logs_are_those_of_the_list(dev: Interface, block: Hash32) -> None:
    (text,) = portion(dev.context.queries.store, block, False, [LogQuery()])
    assert [json.loads(log) for log in logs_of(text)] == json.loads(text)
    assert len(json.loads(text)) == COUNT
    assert list(logs_of(b"[]")) == []
    (one,) = (log for log in logs_of(b"[" + next(logs_of(text)) + b"]"))
    assert json.loads(one) == json.loads(text)[0]


def test_an_unknown_block_has_no_logs(dev: Interface) -> None:
    assert portion(dev.context.queries.store, Hash32(bytes(32)), False, [LogQuery()]) == [b"[]"]


def test_no_more_is_found_than_may_be_held(dev: Interface, block: Hash32, monkeypatch: pytest.MonkeyPatch) -> None:
    store = dev.context.queries.store
    (text,) = portion(store, block, False, [LogQuery()])
    monkeypatch.setattr(log_batches, "MAX_BYTES", 3 * len(text))
    assert portion(store, block, False, [LogQuery()] * 10) == [text] * 4
    monkeypatch.setattr(log_batches, "MAX_QUERIES", 2)
    assert portion(store, block, False, [LogQuery()] * 10) == [text] * 2
