"""Tests `Importer`: outcomes, order, events, and blocks that are executed only once."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from ophion.chain.events import ChainEvent
from ophion.chain.importer import Importer, ImportOutcome
from ophion.errors import InvalidBlock, UnknownParent
from ophion.runtime.thread_pools import InlineLanes, ThreadLanes
from ophion.testing.wait_for import until
from tests.unit.chain.workshop import Workshop, workshop


def importer(shop: Workshop) -> Importer:
    return Importer(shop.chain, InlineLanes(), shop.clock)


def test_a_block_is_head_side_or_known(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        door = importer(shop)
        first, second = shop.branch(2)
        side = shop.branch(1, shop.chain.genesis, extra=b"side")[0]
        received: list[ChainEvent] = []
        shop.chain.events.listen(received.append)

        async def story() -> None:
            assert (await door.import_block(first)).outcome is ImportOutcome.HEAD
            assert (await door.import_block(side)).outcome is ImportOutcome.SIDE
            assert (await door.import_block(first)).outcome is ImportOutcome.KNOWN
            assert (await door.import_block(second)).change is not None

        asyncio.run(story())
        assert shop.chain.head == second.header
        assert [event.head for event in received] == [first.header, second.header]


def test_a_built_block_is_committed_with_the_execution_at_hand(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        door = importer(shop)
        block = shop.branch(1)[0]

        async def story() -> None:
            execution = await door.check(block)
            assert shop.chain.head == shop.chain.genesis
            await door.import_built(block.header, block.body, execution)

        asyncio.run(story())
        assert shop.chain.head == block.header


def test_errors_reach_the_caller_and_leave_nothing_behind(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        door = importer(shop)
        first, second = shop.branch(2)
        bad = shop.block(state_root=bytes(32))

        async def story() -> None:
            with pytest.raises(UnknownParent):
                await door.import_block(second)
            with pytest.raises(InvalidBlock, match="state root"):
                await door.import_block(bad)
            assert [entry.header for entry in door.bad_blocks.recent()] == [bad.header]
            await door.import_block(first)
            await door.import_block(second)

        asyncio.run(story())
        assert shop.chain.head == second.header


def test_imports_that_wait_for_each_other_keep_their_order(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        door = importer(shop)
        blocks = shop.branch(5)

        async def story() -> None:
            await asyncio.gather(*(door.import_block(block) for block in blocks))

        asyncio.run(story())
        assert shop.chain.head == blocks[-1].header


def test_a_batch_is_one_commit_and_one_event(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        door = importer(shop)
        blocks = shop.branch(5)
        received: list[ChainEvent] = []
        shop.chain.events.listen(received.append)

        async def story() -> None:
            await door.import_block(blocks[0])
            batch = await door.import_batch(blocks)
            assert (batch.count, batch.failure) == (4, None)
            again = await door.import_batch(blocks)
            assert (again.count, again.change, again.failure) == (0, None, None)

        asyncio.run(story())
        assert [event.head for event in received] == [blocks[0].header, blocks[4].header]


def test_what_comes_before_a_bad_block_of_a_batch_stays(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        door = importer(shop)
        good = shop.branch(2)
        bad = shop.block(good[1].header, state_root=bytes(32))
        after = shop.branch(1, bad.header)

        async def story() -> None:
            batch = await door.import_batch([*good, bad, *after])
            assert batch.count == 2
            assert isinstance(batch.failure, InvalidBlock)
            orphans = await door.import_batch(after)
            assert orphans.count == 0
            assert isinstance(orphans.failure, InvalidBlock | UnknownParent)

        asyncio.run(story())
        assert shop.chain.head == good[1].header


def test_a_block_is_announced_even_if_its_importer_was_cancelled(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        lanes = ThreadLanes()
        door = Importer(shop.chain, lanes, shop.clock)
        block = shop.branch(1)[0]
        gate = threading.Event()

        async def story() -> None:
            lanes.write.submit(gate.wait)
            importing = asyncio.create_task(door.import_block(block))
            await asyncio.sleep(0)
            importing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await importing
            assert shop.chain.head == shop.chain.genesis
            gate.set()
            await until(lambda: shop.chain.head == block.header)

        try:
            asyncio.run(story())
        finally:
            gate.set()
            lanes.close()
