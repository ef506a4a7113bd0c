"""Produces a block at a fixed interval, empty or not: the development network with `--block-period`."""

from __future__ import annotations

import asyncio

from ophion.native.executor import State
from ophion.primitives.header import HashedHeader
from ophion.producer.block_assembly import Assembler

_BUILD_SHARE = 0.75
"""Fraction of the period in which a block is filled. The remaining time is for writing the block."""


class IntervalSealer:
    """Makes a block at a fixed interval."""

    hashrate = 0
    guard = None

    def __init__(self, assembler: Assembler, period_s: float) -> None:
        self._assembler = assembler
        self._period_s = period_s

    async def run(self) -> None:
        """Produce blocks until cancelled."""
        assembler, clock = self._assembler, self._assembler.clock
        due = clock.monotonic() + self._period_s
        try:
            while True:
                self._begin_early(assembler.chain.head, None, due)
                await asyncio.sleep(due - clock.monotonic())
                started_at = clock.monotonic()
                built = await assembler.assemble(self._period_s * _BUILD_SHARE)
                # build the next block while the current block is written
                self._begin_early(assembler.chain.engine.hashed(built.header), built.state, due + self._period_s)
                await assembler.commit(built.header, built, started_at)
                # if a block takes longer than the period, delay the schedule, so that no backlog builds up
                due = max(due + self._period_s, clock.monotonic())
        finally:
            assembler.discard_early()

    def _begin_early(self, parent: HashedHeader, state: State | None, due: float) -> None:
        assembler, clock = self._assembler, self._assembler.clock
        preferences = assembler.preferences(int(clock.now() + due - clock.monotonic()))
        assembler.begin_early(parent, state, preferences, due, self._period_s * _BUILD_SHARE)
