"""A block as soon as there is something to put in it: the development network without `--block-period`.

A transaction that reaches an idle node is built and committed at once. While one block is being built and written the
pool goes on filling, and the next block takes all of it: blocks grow with the load instead of being one per
transaction. After a block with many transactions the next one is not begun before a few milliseconds have passed:
each block has a fixed cost, and under load it is better spent on more transactions. Seals are empty; only the
development network accepts that.
"""

from __future__ import annotations

import asyncio

from ophion.pool.pool import Added, PoolEvent
from ophion.producer.assembly import Assembler

_BUILD_DEADLINE_S = 1.0
_MANY = 8
_PACE_S = 0.025


class InstantSealer:
    """Seals whatever the pool holds."""

    hashrate = 0

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Make blocks until cancelled."""
        pool = self._assembler.pool
        ignore_pool = pool.events.listen(self._on_pool_event)
        try:
            self._wake.set()
            while True:
                await self._wake.wait()
                self._wake.clear()
                while pool.has_executable and await self._seal():
                    pass
        finally:
            ignore_pool()

    def _on_pool_event(self, event: PoolEvent) -> None:
        if isinstance(event, Added):
            self._wake.set()

    async def _seal(self) -> bool:
        """Make one block; False when nothing in the pool can be put into one as things stand."""
        assembler = self._assembler
        started_at = assembler.clock.monotonic()
        built = await assembler.assemble(_BUILD_DEADLINE_S)
        if not built.body.transaction_count:
            return False
        await assembler.commit(built.header, built, started_at)
        if built.body.transaction_count >= _MANY:
            await asyncio.sleep(started_at + _PACE_S - assembler.clock.monotonic())
        return True
