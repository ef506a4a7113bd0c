"""Tests sealing at an interval."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ophion.producer.interval_sealer import IntervalSealer
from ophion.runtime.clock import SystemClock
from ophion.testing.node_core import open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until


def test_blocks_come_on_schedule_with_or_without_transactions(tmp_path: Path) -> None:
    async def story() -> None:
        core.core.assembler.clock = SystemClock()
        running = asyncio.create_task(IntervalSealer(core.core.assembler, 0.02).run())
        await core.send(legacy_transaction(DEV_KEYS[1], 0))
        await until(lambda: core.queries.head_number >= 3)
        running.cancel()
        await asyncio.wait({running})
        assert len(core.pool) == 0
        first = core.chain.store.body(core.chain.store.canonical_hash(1) or b"")
        assert first is not None
        assert first.transaction_count == 1

    with open_core(tmp_path) as core:
        core.clock.wall = SystemClock().now()
        asyncio.run(story())
