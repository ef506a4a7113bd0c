"""Tests the grouping of blocks in log searches."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from ophion.rpc.services.filters import ChainChange
from ophion.rpc.services.log_query import LogQuery
from ophion.rpc.services.log_search import changed, search
from ophion.runtime.thread_pools import InlineLanes, LaneFull, ThreadLane
from tests.unit.rpc.interface import Interface


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
