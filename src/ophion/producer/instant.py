"""A block as soon as there is something to put in it: the development network without `--block-period`.

A transaction that reaches an idle node is built and committed at once. While one block is being built and written the
pool goes on filling, and the next block takes all of it: blocks grow with the load instead of being one per
transaction. After a block with many transactions the next one is not begun before some milliseconds have passed,
because each block has a fixed cost that under load is better spent on more transactions.

Whoever asks for a receipt in the moment between admission and block is made to wait for the block (`mined`).
Answering "not yet" would be true, but some libraries ask again only when a further block has come, and on an idle
chain none comes.

Seals are empty; only the development network accepts that.
"""

from __future__ import annotations

import asyncio

from ophion.pool.pool import Added, PoolEvent
from ophion.primitives.types import Hash32
from ophion.producer.assembly import Assembler

_BUILD_DEADLINE_S = 1.0
_MANY = 8
_PACE_S = 0.025
_PATIENCE_S = 0.5


class InstantSealer:
    """Seals whatever the pool holds."""

    hashrate = 0

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._wake = asyncio.Event()
        self._is_busy = False
        self._progress: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Make blocks until cancelled."""
        pool = self._assembler.pool
        ignore_pool = pool.events.listen(self._on_pool_event)
        try:
            self._wake.set()
            while True:
                await self._wake.wait()
                self._is_busy = True
                self._wake.clear()
                while pool.has_executable and await self._seal():
                    self._tell_progress()
                self._is_busy = False
                self._tell_progress()
        finally:
            ignore_pool()
            self._is_busy = False
            self._tell_progress()

    async def mined(self, hash: Hash32) -> None:
        """Return once a pooled transaction is in a block, or when it will not be in one of the next."""
        pool = self._assembler.pool
        deadline = self._assembler.clock.monotonic() + _PATIENCE_S
        while pool.get(hash) is not None and (self._is_busy or self._wake.is_set()):
            if self._progress is None:
                self._progress = asyncio.get_running_loop().create_future()
            left = deadline - self._assembler.clock.monotonic()
            await asyncio.wait({self._progress}, timeout=left)
            if left <= 0:
                return

    def _tell_progress(self) -> None:
        if self._progress is not None:
            if not self._progress.done():
                self._progress.set_result(None)
            self._progress = None

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
            self._tell_progress()
            await asyncio.sleep(started_at + _PACE_S - assembler.clock.monotonic())
        return True
