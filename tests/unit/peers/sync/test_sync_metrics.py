"""Tests metrics of synchronisation."""

from __future__ import annotations

import asyncio

import pytest

from ophion.peers.sync.sync_metrics import SyncMetrics
from ophion.runtime.clock import ManualClock
from ophion.testing.virtual_loop import run_virtually


def test_failed_tasks_are_timed_too() -> None:
    async def scenario() -> None:
        figures = SyncMetrics()
        with figures.timed("headers"):
            await asyncio.sleep(0.02)
        with pytest.raises(TimeoutError), figures.timed("headers"):
            await asyncio.wait_for(asyncio.Event().wait(), 2)
        assert sum(figures.tasks["headers"].counts) == 2
        assert figures.tasks["headers"].total == pytest.approx(2.02)
        assert figures.tasks["bodies"].total == 0

    run_virtually(scenario(), ManualClock())
