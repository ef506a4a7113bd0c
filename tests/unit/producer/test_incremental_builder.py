"""The incremental builder makes the same blocks as a full build, and makes them in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chain.block_builder import TOO_LONG, BuiltBlock
from ophion.chainspec.dev_network import dev_genesis
from ophion.native.executor import State
from ophion.pool.events import Dropped, DropReason, PoolEvent
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32
from ophion.producer import incremental_builder
from ophion.producer.interval_sealer import IntervalSealer
from ophion.runtime.clock import ManualClock
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.virtual_loop import run_virtually

A, B, C = DEV_KEYS
GWEI = 10**9
PERIOD_S = 2.0
ENDLESS = bytes.fromhex("5b600056")
SMALL = replace(dev_genesis("petersburg"), gas_limit=70_000)
"""A gas limit that fits three transfers."""


def run_story(tmp_path: Path, story: Callable[[TestCore], Awaitable[Any]], **options: Any) -> Any:
    clock = ManualClock()
    with open_core(tmp_path, clock=clock, **options) as core:
        return run_virtually(story(core), clock)  # type: ignore[arg-type]


@pytest.fixture
def grown(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record, for each block that was started early, whether the sealer used the block."""
    seen: list[bool] = []
    finish = incremental_builder.IncrementalBuilder.finish

    async def noted(
        self: incremental_builder.IncrementalBuilder, *arguments: Any
    ) -> incremental_builder.FilledBlock | None:
        filled = await finish(self, *arguments)
        seen.append(filled is not None)
        return filled

    monkeypatch.setattr(incremental_builder.IncrementalBuilder, "finish", noted)
    return seen


def begin(
    core: TestCore, parent: HashedHeader | None = None, state: State | None = None, period_s: float = PERIOD_S
) -> None:
    """Start the block that is due at this time."""
    assembler, clock = core.core.assembler, core.clock
    preferences = assembler.preferences(int(clock.now() + period_s))
    assembler.begin_early(parent or core.chain.head, state, preferences, clock.monotonic() + period_s, period_s * 0.75)


async def finished(core: TestCore) -> BuiltBlock:
    """Return the block when it is due."""
    await asyncio.sleep(PERIOD_S)
    return await core.core.assembler.assemble(PERIOD_S * 0.75)


async def commit(core: TestCore, built: BuiltBlock) -> HashedHeader:
    return await core.core.assembler.commit(built.header, built, core.clock.monotonic())


def hashes(built: BuiltBlock) -> list[Hash32]:
    return list(built.body.hashes_and_senders()[0])


def test_what_arrives_is_in_the_block_in_the_order_of_arrival(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        waiting = await core.send(
            legacy_transaction(B, 0, gas_price=2 * GWEI), legacy_transaction(C, 0, gas_price=3 * GWEI)
        )
        begin(core)
        await asyncio.sleep(0.5)
        first = await core.send(legacy_transaction(B, 1, gas_price=2 * GWEI))
        await asyncio.sleep(0.5)
        second = await core.send(legacy_transaction(C, 1, gas_price=9 * GWEI))
        await asyncio.sleep(PERIOD_S - 1.01)
        last = await core.send(legacy_transaction(B, 2, gas_price=2 * GWEI))
        built = await core.core.assembler.assemble(1.0)
        assert hashes(built) == [*reversed(waiting), *first, *second, *last]
        header = await commit(core, built)
        assert core.chain.head == header
        assert len(core.pool) == 0

    run_story(tmp_path, story)
    assert grown == [True]


def test_blocks_on_schedule_are_grown_while_the_last_one_is_written(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        running = asyncio.create_task(IntervalSealer(core.core.assembler, PERIOD_S).run())
        for nonce in range(40):
            await core.send(legacy_transaction(B, nonce), legacy_transaction(C, nonce))
            await asyncio.sleep(0.2)
        await asyncio.sleep(PERIOD_S)
        running.cancel()
        await asyncio.wait({running})
        assert len(core.pool) == 0
        counts = [
            core.chain.store.body(core.chain.store.canonical_hash(number) or b"").transaction_count  # type: ignore[union-attr]
            for number in range(1, core.queries.head_number + 1)
        ]
        assert sum(counts) == 80
        assert min(counts[:4]) >= 18

    run_story(tmp_path, story)
    assert grown.count(True) >= 4


def test_a_block_grows_on_a_parent_that_is_not_written_yet(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        await core.send(legacy_transaction(B, 0))
        core.clock.advance(1)
        parent = await core.core.assembler.assemble(1.0)
        begin(core, core.chain.engine.hashed(parent.header), parent.state)
        early = await core.send(legacy_transaction(B, 1))
        await asyncio.sleep(0.5)
        await commit(core, parent)
        late = await core.send(legacy_transaction(C, 0))
        built = await finished(core)
        assert hashes(built) == [*early, *late]
        assert (await commit(core, built)).number == 2
        assert len(core.pool) == 0

    run_story(tmp_path, story)
    assert grown == [True]


def test_what_the_parent_left_in_the_pool_is_in_the_block(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        await core.send(legacy_transaction(B, 0), legacy_transaction(B, 1), legacy_transaction(B, 2))
        left = await core.send(legacy_transaction(B, 3))
        core.clock.advance(1)
        parent = await core.core.assembler.assemble(1.0)
        assert parent.body.transaction_count == 3
        begin(core, core.chain.engine.hashed(parent.header), parent.state)
        behind = await core.send(legacy_transaction(B, 4))
        await asyncio.sleep(0.5)
        await commit(core, parent)
        assert hashes(await finished(core)) == [*left, *behind]

    run_story(tmp_path, story, genesis=SMALL)
    assert grown == [True]


def test_a_replaced_transaction_is_not_in_the_block(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        begin(core)
        await core.send(legacy_transaction(B, 0, gas_price=2 * GWEI))
        others = await core.send(legacy_transaction(C, 0, gas_price=2 * GWEI))
        await asyncio.sleep(0.5)
        dearer = await core.send(legacy_transaction(B, 0, gas_price=4 * GWEI))
        assert hashes(await finished(core)) == [*dearer, *others]

    run_story(tmp_path, story)
    assert grown == [True]


def test_a_sender_that_replaces_without_end_does_not_keep_the_lane_busy(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        begin(core)
        for step in range(8):
            await core.send(legacy_transaction(B, 0, gas_price=(2 + step) * 2 * GWEI))
            await asyncio.sleep(0.2)
        last = await core.send(legacy_transaction(B, 0, gas_price=50 * GWEI))
        growing = core.core.assembler._growing
        assert growing is not None
        assert growing._beginnings == 3
        assert hashes(await finished(core)) == last

    run_story(tmp_path, story)
    assert grown == [False]


@pytest.mark.parametrize("is_last_moment", [False, True])
def test_higher_prices_go_first_in_a_full_block(tmp_path: Path, grown: list[bool], is_last_moment: bool) -> None:
    async def story(core: TestCore) -> None:
        begin(core)
        cheap = await core.send(*(legacy_transaction(B, nonce, gas_price=GWEI) for nonce in range(3)))
        await asyncio.sleep(0.3)
        if is_last_moment:
            await asyncio.sleep(PERIOD_S - 0.3)
        dear = await core.send(legacy_transaction(C, 0, gas_price=5 * GWEI))
        if is_last_moment:
            built = await core.core.assembler.assemble(1.0)
        else:
            built = await finished(core)
        assert hashes(built) == [*dear, *cheap[:2]]
        assert len(core.pool) == 4

    run_story(tmp_path, story, genesis=SMALL)
    assert grown == [not is_last_moment]


def test_a_full_block_of_equal_prices_is_kept(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        begin(core)
        first = await core.send(*(legacy_transaction(B, nonce, gas_price=GWEI) for nonce in range(3)))
        await asyncio.sleep(0.3)
        await core.send(legacy_transaction(C, 0, gas_price=GWEI), legacy_transaction(B, 3, gas_price=9 * GWEI))
        assert hashes(await finished(core)) == first

    run_story(tmp_path, story, genesis=SMALL)
    assert grown == [True]


def test_a_gap_that_closes_brings_in_what_waited_behind_it(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        await core.send(legacy_transaction(B, 0))
        behind = await core.send(legacy_transaction(C, 1), legacy_transaction(C, 2))
        begin(core)
        await asyncio.sleep(0.3)
        closing = await core.send(legacy_transaction(C, 0))
        assert hashes(await finished(core))[1:] == [*closing, *behind]

    run_story(tmp_path, story)
    assert grown == [True]


def test_a_transaction_that_never_ends_is_given_one_whole_block(tmp_path: Path, grown: list[bool]) -> None:
    """The builder aborts the transaction when the block is due, gives it the whole time of the next block, and then
    drops it from the pool.
    """

    async def story() -> None:
        departed: list[tuple[DropReason, str]] = []

        def note(event: PoolEvent) -> None:
            if isinstance(event, Dropped):
                departed.extend((event.reason, reason) for reason in (event.details or {}).values())

        core.pool.events.listen(note)
        for block in range(2):
            begin(core, period_s=0.4)
            others = await core.send(legacy_transaction(C, block))
            await asyncio.sleep(0.2)
            core.clock.advance(0.3)
            if block == 0:
                await core.send(legacy_transaction(B, 0, to=None, data=ENDLESS, gas=2**44, gas_price=GWEI))
            await asyncio.sleep(0.3)
            core.clock.advance(0.1)
            built = await core.core.assembler.assemble(1.0)
            assert hashes(built) == others
            await commit(core, built)
        assert departed == [(DropReason.INVALID, TOO_LONG)]
        assert len(core.pool) == 0

    with open_core(tmp_path, genesis=dev_genesis("petersburg")) as core:
        asyncio.run(story())
    assert grown == [True, True]


def test_a_block_with_other_preferences_is_built_again(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        begin(core)
        sent = await core.send(legacy_transaction(B, 0))
        await asyncio.sleep(0.3)
        core.mining.set_coinbase(C.address)
        built = await finished(core)
        assert built.header.coinbase == C.address
        assert hashes(built) == sent
        await commit(core, built)

    run_story(tmp_path, story)
    assert grown == [False]


def test_another_vanity_does_not_matter(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        begin(core)
        await core.send(legacy_transaction(B, 0))
        await asyncio.sleep(0.3)
        core.core.assembler.settings.extra_data = b"hello"
        built = await finished(core)
        assert built.header.extra_data == b"hello"
        await commit(core, built)

    run_story(tmp_path, story)
    assert grown == [True]


def test_a_block_that_is_long_overdue_has_the_time_of_the_clock(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        begin(core)
        await core.send(legacy_transaction(B, 0))
        await asyncio.sleep(PERIOD_S + 5)
        built = await core.core.assembler.assemble(1.0)
        assert built.header.timestamp == int(core.clock.now())

    run_story(tmp_path, story)
    assert grown == []


def test_another_head_ends_the_growth(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        begin(core)
        growing = core.core.assembler._growing
        assert growing is not None
        await core.send(legacy_transaction(B, 0))
        await asyncio.sleep(0.3)
        core.core.assembler._growing = None
        await core.seal()
        assert growing.is_closed
        await core.send(legacy_transaction(B, 1))
        assert growing._timer is None

    run_story(tmp_path, story)


def test_transactions_that_the_pool_evicted_stay_in_the_block(tmp_path: Path, grown: list[bool]) -> None:
    async def story(core: TestCore) -> None:
        begin(core)
        sent = await core.send(legacy_transaction(B, 0))
        await asyncio.sleep(0.3)
        core.pool.drop(sent, DropReason.EVICTED)
        assert hashes(await finished(core)) == sent

    run_story(tmp_path, story)
    assert grown == [True]


def test_blocks_hold_no_more_bytes_than_others_accept(
    tmp_path: Path, grown: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(core: TestCore) -> int:
        begin(core)
        for nonce in range(5):
            await core.send(legacy_transaction(B, nonce, data=bytes(4000), gas=200_000))
            await asyncio.sleep(0.1)
        return (await finished(core)).body.transaction_count

    monkeypatch.setattr(incremental_builder, "MAX_BLOCK_SIZE", incremental_builder.HEADER_BYTES + 13_000)
    assert run_story(tmp_path, story) == 3
    assert grown == [True]


def test_a_block_that_was_overtaken_holds_no_state(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        rival = await core.core.assembler.assemble(PERIOD_S)
        await core.send(legacy_transaction(A, 0))
        begin(core)
        await asyncio.sleep(PERIOD_S / 2)
        growing = core.core.assembler._growing
        assert growing is not None
        assert growing._block is not None
        await commit(core, rival)
        assert growing.is_closed
        assert growing._block is None

    run_story(tmp_path, story)
