"""Tests the pool as one array: at once, in pieces, and during changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.errors import RpcError
from ophion.pool.events import Origin
from ophion.rpc.services import pool_listing
from ophion.rpc.services.pool_listing import PoolListing, listed, rendered
from ophion.rpc.transport.streaming import StreamedResult, StreamLimit, whole_of
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface


def waiting(dev: Interface, count: int, size: int = 100) -> list[Any]:
    """Add transactions with a nonce gap."""
    data = bytes(size)
    raws = [legacy_transaction(DEV_KEYS[1], nonce, gas=3_000_000, data=data) for nonce in range(1, count + 1)]
    dev.run(dev.node.pool.add(raws, Origin.LOCAL))
    return dev.node.pool.transactions()


def test_few_are_rendered_at_once(dev: Interface) -> None:
    assert dev.run(listed(dev.context, [])) == b"[]"
    text = dev.run(listed(dev.context, waiting(dev, 3)))
    assert isinstance(text, bytes)
    assert [int(one["nonce"], 16) for one in json.loads(text)] == [1, 2, 3]


def test_many_leave_in_pieces_that_make_one_array(dev: Interface, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_listing, "_PIECE", 4000)
    items = waiting(dev, 100)
    found = dev.run(listed(dev.context, items))
    assert isinstance(found, StreamedResult)
    assert [one["hash"] for one in json.loads(dev.run(whole_of(found)))] == ["0x" + item.hash.hex() for item in items]
    assert dev.context.streams.open == 0
    assert len(dev.ask("eth_pendingTransactions")) == len(dev.ask("txpool_besuPendingTransactions")) == 100
    assert len(dev.ask("txpool_besuPendingTransactions", 70)) == 70


def test_what_has_left_the_pool_is_left_out_and_not_kept(dev: Interface, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_listing, "_PIECE", 1)
    items = waiting(dev, 4)
    source = PoolListing(dev.node.pool, [item.hash for item in items])
    pieces = [source.next()]
    for item in items[1:]:
        dev.node.pool._queue.remove(item)
    while (piece := source.next()) is not None:
        pieces.append(piece)
    assert len(json.loads(b"".join(filter(None, pieces)))) == 1
    nobody = PoolListing(dev.node.pool, [item.hash for item in items[1:]])
    assert b"".join(iter(nobody.next, None)) == b"[]"


def test_other_forms_are_refused_when_they_would_be_too_long(dev: Interface) -> None:
    items = waiting(dev, 3, 50_000)
    assert dev.run(rendered(dev.context, items, lambda: len(items))) == 3
    small = replace(dev.context, streams=StreamLimit(max_bytes=100_000))
    with pytest.raises(RpcError, match="maximum RPC response size"):
        dev.run(rendered(small, items, lambda: len(items)))
    assert list(dev.ask("txpool_content")["queued"])
