"""`DevSealer`: decides when a development node makes blocks."""

from __future__ import annotations

import asyncio
import logging

from ophion.errors import OphionError
from ophion.native.exceptions import NativeError, SourceFailed
from ophion.pool.queue import PooledTransaction
from ophion.producer.block_assembly import Assembler
from ophion.producer.instant_sealer import InstantSealer
from ophion.runtime.lanes import Lane

log = logging.getLogger(__name__)

_BUILD_DEADLINE_S = 5.0
_INLINE_S = 0.002
"""Time limit of a block that is built on the event loop."""
_SHARED_S = 0.02
"""Seconds after a block with several transactions in which none is built on the event loop: senders are many."""


class DevSealer(InstantSealer):
    """Makes blocks automatically for each transaction, at an interval, or on demand."""

    def __init__(self, assembler: Assembler, is_automatic: bool, interval_s: float) -> None:
        super().__init__(assembler)
        self.head_lock = asyncio.Lock()
        """Held by everything that moves the head or edits its state."""
        self.is_automatic = is_automatic
        self.interval_s = interval_s
        """Seconds between blocks; 0 when interval mining is off."""
        self.write_lane: Lane | None = None
        """Set if blocks may be built on the event loop; none is while this lane works."""
        self._changed = asyncio.Event()
        self._shared_at = -1.0

    def set_mode(self, is_automatic: bool, interval_s: float) -> None:
        """Choose between automatic, interval and manual mining."""
        self.is_automatic, self.interval_s = is_automatic, interval_s
        self._changed.set()

    async def run(self) -> None:
        """Make blocks until cancelled."""
        while True:
            self._changed.clear()
            if self.is_automatic:
                mode = asyncio.create_task(super().run())
            elif self.interval_s:
                mode = asyncio.create_task(self._run_by_interval(self.interval_s))
            else:
                await self._changed.wait()
                continue
            changing = asyncio.create_task(self._changed.wait())
            try:
                await asyncio.wait({mode, changing}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (mode, changing):
                    task.cancel()
                await asyncio.wait({mode, changing})
            if not mode.cancelled() and mode.exception() is not None:
                mode.result()

    async def _run_by_interval(self, interval_s: float) -> None:
        clock = self._clock
        due = clock.monotonic() + interval_s
        while True:
            await asyncio.sleep(due - clock.monotonic())
            try:
                await self.make_block()
            except SourceFailed as error:
                log.warning("no block made, source of the fork is away reason=%s", error)
            due = max(due + interval_s, clock.monotonic())

    # --- blocks on the event loop -------------------------------------------------------------------

    def _hold_answer(self, item: PooledTransaction) -> asyncio.Future[None] | None:
        """Mine a transaction that comes alone before its sender gets an answer. Others wait as usual."""
        if self._is_alone(item) and self._seal_inline():
            self._note_answer(item.sender, self._clock.monotonic())
            return None
        return super()._hold_answer(item)

    def _is_alone(self, item: PooledTransaction) -> bool:
        """Whether nothing else is to be done, and the sender looks at results before it sends again."""
        lane = self.write_lane
        return (
            lane is not None
            and not lane.waiting
            and not self._is_busy
            and not self.head_lock.locked()
            and len(self._assembler.pool) == 1
            and self._assembler.pool.has_executable
            and not self._is_fast(item.sender)
            and self._clock.monotonic() - self._shared_at > _SHARED_S
        )

    def _seal_inline(self) -> bool:
        """Build and commit a block without a change of thread: a change costs about as much as the block.

        Returns False if the transaction takes too long. The task of the sealer then builds the block in a lane.
        """
        try:
            return self._assembler.produce_inline(_INLINE_S)
        except (OphionError, NativeError) as error:
            log.debug("no block made on the event loop reason=%s", error)
            return False

    async def _seal(self) -> bool:
        if len(self._assembler.pool) > 1:
            self._shared_at = self._clock.monotonic()
        async with self.head_lock:
            try:
                return await super()._seal()
            except SourceFailed as error:
                log.warning("no block made, source of the fork is away reason=%s", error)
                return False

    async def make_block(self) -> None:
        """Make one block with the transactions of the pool; the block may be empty."""
        async with self.head_lock:
            await self.make_block_locked()

    async def make_block_locked(self) -> None:
        """Same as `make_block`, but the caller already holds the lock."""
        assembler = self._assembler
        started_at = self._clock.monotonic()
        built = await assembler.assemble(_BUILD_DEADLINE_S)
        await assembler.commit(built.header, built, started_at)
