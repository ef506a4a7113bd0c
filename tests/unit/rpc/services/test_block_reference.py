"""Tests the resolution of block parameters."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from ophion.errors import RpcError
from ophion.primitives.types import BlockTag
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.endpoints.services import method_table
from ophion.rpc.schema.registry import HTTP
from ophion.rpc.schema.wire_types import CanonicalHash
from ophion.rpc.services.block_reference import header_at, is_long, read_at, view_at
from ophion.runtime.thread_pools import InlineLanes, ThreadLane
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.contracts import many_logs
from tests.unit.rpc.interface import Interface


def test_a_header_is_found_by_tag_number_and_hash(sample: Interface) -> None:
    head = sample.node.queries.head
    for block in (BlockTag.LATEST, BlockTag.PENDING, 32, head.hash, CanonicalHash(head.hash)):
        assert header_at(sample.context, block) == head
    for unknown in (33, -1, b"\xab" * 32, CanonicalHash(b"\xab" * 32)):
        assert header_at(sample.context, unknown) is None
        assert view_at(sample.context, unknown) is None


def test_a_block_off_the_canonical_chain_is_refused_where_it_must_be_canonical(sample: Interface) -> None:
    queries = sample.node.queries
    genesis = queries.header(0)
    assert genesis is not None
    canonical = queries.is_canonical
    try:
        queries.is_canonical = lambda header: False  # type: ignore[method-assign]
        with pytest.raises(RpcError, match="Invalid input"):
            header_at(sample.context, CanonicalHash(genesis.hash))
        assert header_at(sample.context, genesis.hash) == genesis
    finally:
        queries.is_canonical = canonical  # type: ignore[method-assign]


def test_reading_waits_only_for_a_pending_block_that_is_not_built(dev: Interface) -> None:
    assert read_at(dev.context, BlockTag.LATEST, lambda view: view.header.number) == 0
    assert read_at(dev.context, 7, lambda view: view.header.number) is None
    waiting = read_at(dev.context, BlockTag.PENDING, lambda view: view.header.number)
    assert not isinstance(waiting, int | None)
    assert dev.run(waiting) == 1  # type: ignore[arg-type]
    assert read_at(dev.context, BlockTag.PENDING, lambda view: view.header.number) == 1


def test_a_block_with_many_logs_is_rendered_in_a_lane(dev: Interface) -> None:
    """Regression: rendering a block with a hundred million gas of logs blocked the event loop for 300 ms."""
    lanes = InlineLanes()
    lanes.read = ThreadLane("read", 1, 0)  # type: ignore[assignment]
    without = Dispatcher(method_table(replace(dev.context, lanes=lanes), ("eth", "debug"), HTTP), dev.loop)
    for nonce, count in enumerate((10, 5500)):
        raw = legacy_transaction(DEV_KEYS[1], nonce, to=None, gas=3_000_000, data=many_logs(count))
        header, _ = dev.run(dev.node.mine(raw))
        assert is_long(header.header) == (count > 10)
        number, hash = hex(header.number), "0x" + header.hash.hex()
        (transaction,) = dev.ask("eth_getBlockByHash", hash)["transactions"]
        questions: list[tuple[str, object]] = [
            ("eth_getBlockByNumber", [number, True]),
            ("eth_getBlockByHash", [hash, True]),
            ("eth_getBlockReceipts", [number]),
            ("eth_getTransactionReceipt", [transaction]),
            ("eth_getLogs", [{"blockHash": hash}]),
            ("eth_getLogs", [{"fromBlock": number, "toBlock": number}]),
            ("debug_getRawReceipts", [number]),
        ]
        for name, params in questions:
            request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": name, "params": params}).encode()
            found, refused = dev.message(request), dev.message(request, without)
            assert found["result"], name
            if is_long(header.header):
                assert refused["error"]["code"] == -32005, name
            else:
                assert refused == found, name
