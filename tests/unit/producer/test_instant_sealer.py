"""Tests instant sealing: at once when idle, in batches under load, and never without transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ophion.primitives.types import Hash32
from ophion.producer.instant_sealer import InstantSealer
from ophion.runtime.thread_pools import ThreadLanes
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until

A, B, C = DEV_KEYS
PATIENCE_S = 60.0
"""A timeout longer than any machine takes for a block. An earlier answer is not caused by the timeout."""


def run_story(tmp_path: Path, story: Callable[[TestCore], Awaitable[Any]], **options: Any) -> Any:
    with open_core(tmp_path, **options) as core:
        return asyncio.run(story(core))  # type: ignore[arg-type]


async def sealing(core: TestCore, story: Callable[[], Awaitable[None]], sealer: InstantSealer | None = None) -> None:
    running = asyncio.create_task((sealer or InstantSealer(core.core.assembler, PATIENCE_S)).run())
    try:
        await story()
    finally:
        running.cancel()
        await asyncio.wait({running})
    assert running.cancelled()


def mined(core: TestCore, hashes: list[Hash32]) -> Callable[[], bool]:
    return lambda: all(core.queries.transaction_position(hash) is not None for hash in hashes)


def test_a_transaction_is_sealed_at_once(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        async def body() -> None:
            hashes = await core.send(legacy_transaction(B, 0))
            await until(mined(core, hashes))
            assert core.queries.head_number == 1
            assert len(core.pool) == 0

        await sealing(core, body)

    run_story(tmp_path, story)


def test_nothing_is_sealed_without_transactions(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        async def body() -> None:
            for _ in range(20):
                await asyncio.sleep(0)
            assert core.queries.head_number == 0

        await sealing(core, body)

    run_story(tmp_path, story)


def test_what_was_in_the_pool_before_is_sealed_first(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        hashes = await core.send(legacy_transaction(B, 0), legacy_transaction(C, 0))

        async def body() -> None:
            await until(mined(core, hashes))
            assert core.queries.head_number == 1

        await sealing(core, body)

    run_story(tmp_path, story)


def test_transactions_that_arrive_together_share_a_block(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        async def body() -> None:
            raws = [legacy_transaction(B, nonce) for nonce in range(40)]
            hashes = [one for [one] in await asyncio.gather(*(core.send(raw) for raw in raws))]
            await until(mined(core, hashes))
            assert core.queries.head_number <= 5

        await sealing(core, body)

    run_story(tmp_path, story, lanes=ThreadLanes())


def test_a_transaction_that_waits_for_its_nonce_does_not_keep_the_sealer_busy(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        async def body() -> None:
            await core.send(legacy_transaction(B, 1))
            for _ in range(20):
                await asyncio.sleep(0)
            assert core.queries.head_number == 0
            hashes = await core.send(legacy_transaction(B, 0))
            await until(mined(core, hashes))
            await until(lambda: len(core.pool) == 0)

        await sealing(core, body)

    run_story(tmp_path, story)


def test_a_transaction_that_no_block_can_hold_is_dropped_and_sealing_goes_on(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        async def body() -> None:
            await core.send(legacy_transaction(B, 0, value=89_999 * 10**18), legacy_transaction(B, 1, value=10**18))
            await until(lambda: len(core.pool) == 0)
            hashes = await core.send(legacy_transaction(C, 0))
            await until(mined(core, hashes))

        await sealing(core, body)

    run_story(tmp_path, story)


def test_a_request_right_after_sending_can_wait_for_the_block(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        sealer = InstantSealer(core.core.assembler, PATIENCE_S)

        async def body() -> None:
            await asyncio.sleep(0.01)
            hashes = await core.send(*(legacy_transaction(B, nonce) for nonce in range(30)))
            await asyncio.gather(*(sealer.mined(hash) for hash in hashes))
            assert mined(core, hashes)()
            await sealer.mined(hashes[0])
            await sealer.mined(bytes(32))

        await sealing(core, body, sealer)

    run_story(tmp_path, story, lanes=ThreadLanes())


def test_no_request_waits_for_a_transaction_that_is_not_about_to_be_mined(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        sealer = InstantSealer(core.core.assembler, PATIENCE_S)

        async def body() -> None:
            [hash] = await core.send(legacy_transaction(B, 5))
            async with asyncio.timeout(PATIENCE_S / 2):
                await sealer.mined(hash)
            assert core.pool.get(hash) is not None

        await sealing(core, body, sealer)

    run_story(tmp_path, story)


def test_a_sender_is_answered_when_its_block_is_there(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        async def body() -> None:
            await asyncio.sleep(0.01)
            for nonce in range(3):
                [hash] = await core.send(legacy_transaction(B, nonce))
                assert core.queries.transaction_position(hash) is not None
                core.clock.advance(0.01)

        await sealing(core, body)

    run_story(tmp_path, story, lanes=ThreadLanes())


def test_a_sender_that_comes_back_at_once_is_not_kept_waiting(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        async def body() -> None:
            await asyncio.sleep(0.01)
            await core.send(legacy_transaction(B, 0))
            [hash] = await core.send(legacy_transaction(B, 1))
            assert core.queries.transaction_position(hash) is None
            core.clock.advance(0.01)
            [hash] = await core.send(legacy_transaction(C, 0))
            assert core.queries.transaction_position(hash) is not None

        await sealing(core, body)

    run_story(tmp_path, story, lanes=ThreadLanes())


def test_many_requests_do_not_wait(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        async def body() -> None:
            await asyncio.sleep(0.01)
            first = await asyncio.gather(*(core.send(legacy_transaction(B, nonce)) for nonce in range(5)))
            assert mined(core, [hash for [hash] in first])()
            [hash] = await core.send(legacy_transaction(C, 0))
            assert core.queries.transaction_position(hash) is None

        await sealing(core, body)

    run_story(tmp_path, story, lanes=ThreadLanes())


def test_requests_do_not_wait_for_a_block_that_is_late(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        async def body() -> None:
            async with asyncio.timeout(PATIENCE_S / 2):
                await core.send(legacy_transaction(B, 3))

        await sealing(core, body)

    run_story(tmp_path, story)


def test_stopping_closes_all_connections(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        sealer = InstantSealer(core.core.assembler, PATIENCE_S)
        running = asyncio.create_task(sealer.run())
        await asyncio.sleep(0.01)
        sending = asyncio.create_task(core.send(legacy_transaction(B, 0)))
        await until(lambda: len(core.pool) == 1 or core.queries.head_number == 1)
        running.cancel()
        await asyncio.wait({running})
        async with asyncio.timeout(PATIENCE_S / 2):
            await sending
        assert core.pool.hold_answer is None

    run_story(tmp_path, story, lanes=ThreadLanes())
