"""A development node makes the block of a single transaction on the event loop, and all other blocks in a worker
thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec.structs import replace

from ophion.dev.sealer import DevSealer
from ophion.node.interface_options import CHEAT_CODES, HttpConfig
from ophion.node.storage_options import StorageConfig
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until

A, B, C = DEV_KEYS
CONFIG = replace(
    DEV_CONFIG,
    http=HttpConfig(enabled=True, groups=tuple(CHEAT_CODES)),
    storage=StorageConfig(durable=False),
)


def sealed(tmp_path: Path, story: Callable[[TestCore, DevSealer], Awaitable[None]]) -> None:
    """Run a test scenario while the sealer of a core with cheat codes runs."""

    async def body(core: TestCore) -> None:
        dev = core.core.dev
        assert dev is not None
        running = asyncio.create_task(dev.sealer.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        try:
            await story(core, dev.sealer)
        finally:
            running.cancel()
            await asyncio.wait({running})

    with open_core(tmp_path, config=CONFIG) as core:
        asyncio.run(body(core))


def test_a_transaction_that_comes_alone_is_mined_when_its_sender_is_answered(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        for nonce in range(3):
            await core.send(legacy_transaction(B, nonce))
            assert core.queries.head_number == nonce + 1
            assert not len(core.pool)
            sealer.note_lookup()

    sealed(tmp_path, story)


def test_a_transaction_after_a_stop_is_not_mined(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        # no turn of the event loop lies between the stop and the transaction, as in a batch of requests
        sealer.enable(False)
        await core.send(legacy_transaction(B, 0))
        await asyncio.sleep(0.01)
        assert (core.queries.head_number, len(core.pool)) == (0, 1)
        sealer.enable(True)
        await until(lambda: core.queries.head_number == 1)

        sealer.set_mode(is_automatic=False, interval_s=0)
        await core.send(legacy_transaction(B, 1))
        await asyncio.sleep(0.01)
        assert (core.queries.head_number, len(core.pool)) == (1, 1)
        sealer.set_mode(is_automatic=True, interval_s=0)
        await until(lambda: core.queries.head_number == 2)

    sealed(tmp_path, story)


def test_no_block_is_made_on_the_loop_while_the_write_lane_works(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        assert sealer.write_lane is not None
        sealer.write_lane.waiting = 1  # type: ignore[misc]  # `waiting` of an InlineLane is a plain attribute
        sending = asyncio.ensure_future(core.send(legacy_transaction(B, 0)))
        for _ in range(3):
            await asyncio.sleep(0)
        sealer.write_lane.waiting = 0  # type: ignore[misc]
        await sending
        assert core.queries.head_number == 1

    sealed(tmp_path, story)


def test_a_transaction_that_cannot_be_mined_leaves_the_chain_as_it_is(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        await core.send(legacy_transaction(B, 1))
        assert core.queries.head_number == 0
        await core.send(legacy_transaction(B, 0))
        await until(lambda: not len(core.pool))

    sealed(tmp_path, story)
