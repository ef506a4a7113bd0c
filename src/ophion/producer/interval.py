"""A block every so many seconds, empty or not: the development network with `--block-period`."""

from __future__ import annotations

import asyncio

from ophion.producer.assembly import Assembler

_BUILD_SHARE = 0.75
"""Part of the period that may go into filling a block; the rest is for writing it."""


class IntervalSealer:
    """Seals on a fixed schedule."""

    hashrate = 0

    def __init__(self, assembler: Assembler, period_s: float) -> None:
        self._assembler = assembler
        self._period_s = period_s

    async def run(self) -> None:
        """Make blocks until cancelled."""
        clock = self._assembler.clock
        due = clock.monotonic() + self._period_s
        while True:
            await asyncio.sleep(due - clock.monotonic())
            started_at = clock.monotonic()
            built = await self._assembler.assemble(self._period_s * _BUILD_SHARE)
            await self._assembler.commit(built.header, built, started_at)
            # a block that took longer than the period delays the schedule instead of making blocks pile up
            due = max(due + self._period_s, clock.monotonic())
