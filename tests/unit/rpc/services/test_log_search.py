"""Tests the grouping of blocks in log searches, and the streams of large results."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.errors import StorageError
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.filters import ChainChange
from ophion.rpc.services.log_query import LogQuery
from ophion.rpc.services.log_search import changed, search
from ophion.rpc.transport.streaming import StreamedResult, StreamLimit, whole_of
from ophion.runtime.thread_pools import InlineLanes, LaneFull, ThreadLane
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface

EMIT_100 = bytes.fromhex("60645b60006000a06001900380600257 00".replace(" ", ""))
"""EVM code that emits a hundred logs without topics and data."""
EVERYTHING = LogQuery(from_block=0)


def change(sample: Interface, number: int, is_removed: bool = False) -> ChainChange:
    header = sample.node.queries.header(number)
    assert header is not None
    return ChainChange(header.hash, number, is_removed)


def logs(sample: Interface, *blocks: ChainChange) -> list[tuple[int, bool]]:
    text = sample.run(changed(sample.context, LogQuery(), blocks))
    return [(int(one["blockNumber"], 16), one["removed"]) for one in json.loads(text)]


def test_nothing_changed_gives_nothing(sample: Interface) -> None:
    assert logs(sample) == []
    assert logs(sample, change(sample, 1)) == []


@pytest.mark.parametrize("first", [0x14, 0x02], ids=["one by one", "as one range"])
def test_a_run_of_blocks_gives_the_logs_of_its_range(sample: Interface, first: int) -> None:
    expected = [
        (int(one["blockNumber"], 16), False)
        for one in sample.ask("eth_getLogs", {"fromBlock": hex(first), "toBlock": "0x1c"})
    ]
    assert len(expected) > 2
    blocks = [change(sample, number) for number in range(first, 0x1D)]
    assert logs(sample, *blocks) == expected
    assert logs(sample, *blocks) == expected, "a second filter with the same query"


def test_filters_with_the_same_query_search_a_block_once(sample: Interface) -> None:
    cache = sample.context.filters.log_cache
    header = sample.node.queries.header(0x17)
    assert header is not None
    assert logs(sample, change(sample, 0x17)) == [(0x17, False)]
    text = cache.get(header.hash, False, LogQuery())
    assert text is not None
    assert text == sample.run(search(sample.context, LogQuery(block_hash=header.hash)))
    assert cache.get(header.hash, True, LogQuery()) is None
    assert logs(sample, change(sample, 0x17, True)) == [(0x17, True)]
    assert cache.get(header.hash, False, LogQuery()) == text


def test_blocks_that_left_come_first_and_are_marked(sample: Interface) -> None:
    blocks = [change(sample, 0x17, True), change(sample, 0x17), change(sample, 0x18)]
    found = logs(sample, *blocks)
    assert found[0] == (0x17, True)
    assert (0x17, False) in found[1:]


def test_a_block_that_is_not_canonical_any_more_is_read_by_its_hash(sample: Interface) -> None:
    foreign_change = ChainChange(change(sample, 0x17).hash, 0x16, False)
    assert logs(sample, foreign_change) == [(0x17, False)]


def test_a_few_blocks_are_searched_at_once_and_many_in_the_lane(sample: Interface) -> None:
    lanes = InlineLanes()
    lanes.read = ThreadLane("read", 1, 0)  # type: ignore[assignment]
    context = replace(sample.context, lanes=lanes)
    few = sample.run(search(context, LogQuery(from_block=3, to_block=18)))
    assert few == sample.run(search(sample.context, LogQuery(from_block=3, to_block=18)))
    with pytest.raises(LaneFull):
        sample.run(search(context, LogQuery(from_block=3, to_block=19)))


@pytest.fixture
def large(dev: Interface) -> Interface:
    """Return a chain with 4,000 logs in 20 blocks, which take more than two pieces of a stream."""
    code = b"\x60%c\x80\x60\x0b\x60\x00\x39\x60\x00\xf3" % len(EMIT_100) + EMIT_100
    create = legacy_transaction(DEV_KEYS[1], 0, to=None, gas=300_000, data=code)
    _, (created,) = dev.run(dev.node.mine(create))
    contract = bytes.fromhex(dev.ask("eth_getTransactionReceipt", "0x" + created.hex())["contractAddress"][2:])
    for nonce in range(1, 41, 2):
        calls = [legacy_transaction(DEV_KEYS[1], nonce + at, to=contract, gas=500_000) for at in (0, 1)]
        dev.run(dev.node.mine(*calls))
    return dev


def whole(sample: Interface, context: RpcContext, query: LogQuery = EVERYTHING) -> list[Any]:
    found = sample.run(search(context, query))
    text = sample.run(whole_of(found)) if isinstance(found, StreamedResult) else found
    logs: list[Any] = json.loads(text)
    return logs


def test_a_large_result_is_streamed_and_has_every_log_once(large: Interface) -> None:
    found = large.run(search(large.context, EVERYTHING))
    assert isinstance(found, StreamedResult)
    assert large.context.streams.open == 1
    logs = json.loads(large.run(whole_of(found)))
    assert large.context.streams.open == 0
    assert [(int(one["blockNumber"], 16), int(one["logIndex"], 16)) for one in logs] == [
        (block, index) for block in range(2, 22) for index in range(200)
    ]
    assert logs == [
        one for block in range(2, 22) for one in whole(large, large.context, LogQuery(from_block=block, to_block=block))
    ]
    assert large.ask("eth_getLogs", {"fromBlock": "0x0"}) == logs
    assert large.ask("eth_getFilterLogs", large.ask("eth_newFilter", {"fromBlock": "0x0"})) == logs
    assert whole(large, large.context, LogQuery(from_block=0, to_block=20)) == logs[:-200]


def test_too_many_logs_are_refused_before_the_first_piece(large: Interface) -> None:
    for most in (4_000, 0):
        context = replace(large.context, limits=replace(large.context.limits, max_logs=most))
        assert len(whole(large, context)) == 4_000
    for most in (3_999, 10):
        context = replace(large.context, limits=replace(large.context.limits, max_logs=most))
        with pytest.raises(StorageError, match=f"limit: more than {most} logs match"):
            large.run(search(context, EVERYTHING))


def test_a_stream_ends_when_its_blocks_leave_the_chain(large: Interface) -> None:
    found = large.run(search(large.context, EVERYTHING))
    assert isinstance(found, StreamedResult)
    earlier = large.node.queries.header(3)
    assert earlier is not None
    large.node.chain.store.rewind(earlier.hash, earlier.header.state_root)
    with pytest.raises(StorageError, match="reorganised"):
        large.run(whole_of(found))
    assert large.context.streams.open == 0


def test_new_blocks_do_not_join_a_stream(large: Interface) -> None:
    found = large.run(search(large.context, EVERYTHING))
    assert isinstance(found, StreamedResult)
    large.run(large.node.seal())
    assert len(json.loads(large.run(whole_of(found)))) == 4_000


def test_a_result_is_collected_while_too_many_streams_are_open(large: Interface) -> None:
    context = replace(large.context, streams=StreamLimit(1))
    context.streams.enter()
    found = large.run(search(context, EVERYTHING))
    assert isinstance(found, bytes)
    assert len(json.loads(found)) == 4_000
