"""`DevSealer`: decides when a development node makes blocks."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ophion.errors import OphionError
from ophion.native.exceptions import NativeError, SourceFailed
from ophion.pool.queue import PooledTransaction
from ophion.primitives.types import Hash32
from ophion.producer.block_assembly import Assembler
from ophion.producer.instant_sealer import InstantSealer
from ophion.runtime.block_priority import BlockPriority
from ophion.runtime.thread_pools import Lane

log = logging.getLogger(__name__)

_BUILD_DEADLINE_S = 5.0
_INLINE_S = 0.002
"""Maximum seconds that building a block on the event loop may take. A block that takes longer is built in a worker
thread.
"""
_EARLY_GAS = 1_000_000
"""Maximum gas limit of a transaction whose sender gets its answer before the block is made."""
_EARLY_S = 0.1
"""Maximum seconds for building a block on the event loop after an early answer. On an idle machine, `_EARLY_GAS` limits
this time to a few milliseconds.
"""
_MAX_WAIT_S = 1.0
"""Maximum seconds that other requests wait for a block whose sender got an early answer. The block may be late when
other processes delay the next step of the loop.
"""
_SHARED_S = 0.02
"""Seconds after a block with several transactions during which no block is built on the event loop."""


class DevSealer(InstantSealer):
    """Makes blocks automatically for each transaction, at an interval, both, or on demand."""

    def __init__(self, assembler: Assembler, is_automatic: bool, interval_s: float) -> None:
        super().__init__(assembler)
        self.head_lock = asyncio.Lock()
        """Every operation that moves the head or edits its state holds this lock."""
        self.is_automatic = is_automatic
        self.interval_s = interval_s
        """Seconds between blocks; 0 when interval mining is off."""
        self.write_lane: Lane | None = None
        """The write lane (worker thread), or None if no block may be built on the event loop. While this lane is busy,
        blocks are built in the lane.
        """
        self.block_priority = BlockPriority()
        """Turned on between an early answer and its block, so that requests that arrive in between see the block."""
        self._answered: Hash32 | None = None
        """The pooled transaction whose sender has its answer already. The next step of the event loop mines it."""
        self._changed = asyncio.Event()
        self._shared_at = -1.0

    @property
    def is_enabled(self) -> bool:
        """Whether pooled transactions are mined automatically."""
        return self._is_enabled and self.is_automatic

    def set_mode(self, is_automatic: bool, interval_s: float) -> None:
        """Choose between automatic, interval, mixed and manual mining."""
        self.is_automatic, self.interval_s = is_automatic, interval_s
        self._changed.set()

    async def run(self) -> None:
        """Mine blocks automatically or at the interval, until cancelled."""
        while True:
            self._changed.clear()
            modes = set()
            if self.is_automatic:
                modes.add(asyncio.create_task(super().run()))
            if self.interval_s:
                modes.add(asyncio.create_task(self._run_by_interval(self.interval_s)))
            changing = asyncio.create_task(self._changed.wait())
            tasks: set[asyncio.Task[Any]] = {changing, *modes}
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self.block_priority.end()
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
            for mode in modes:
                if not mode.cancelled() and mode.exception() is not None:
                    mode.result()

    async def _run_by_interval(self, interval_s: float) -> None:
        clock = self._clock
        due = clock.monotonic() + interval_s
        while True:
            await asyncio.sleep(due - clock.monotonic())
            try:
                if self._is_enabled and self.interval_s:
                    await self.make_block()
            except SourceFailed as error:
                log.warning("no block made, source of the fork is away reason=%s", error)
            due = max(due + interval_s, clock.monotonic())

    # --- blocks on the event loop -------------------------------------------------------------------

    def _hold_answer(self, item: PooledTransaction, takes_early_answer: bool) -> asyncio.Future[None] | None:
        """If no other transaction is pending, mine this transaction at once.

        The sender gets its response after the block. Only a sender that accepts an early answer gets the response
        before the block, so that the client continues meanwhile. The task of `run` makes the block in the next step of
        the event loop. Until then, other requests wait.
        """
        if not self._is_alone(item):
            return super()._hold_answer(item, takes_early_answer)
        if takes_early_answer and item.gas_limit <= _EARLY_GAS:
            self._answered = item.hash
            self.block_priority.begin(_MAX_WAIT_S)
        elif not self._seal_inline(_INLINE_S):
            return super()._hold_answer(item, takes_early_answer)
        self._note_answer(item.sender, self._clock.monotonic())
        return None

    def _seal_answered(self) -> bool:
        """Make the block of the transaction whose sender got an early answer. Returns False if another block must be
        made instead, in a worker thread.
        """
        hash, self._answered = self._answered, None
        try:
            return hash is not None and self._is_idle and self._seal_inline(_EARLY_S)
        finally:
            self.block_priority.end()

    def _is_alone(self, item: PooledTransaction) -> bool:
        """Whether the transaction can be mined at once: the sealer is idle, the pool has no other transaction, and the
        sender waits for the result before it sends again.
        """
        return (
            self._is_idle
            and not self._is_busy
            and self._assembler.pool.has_executable
            and not self._is_fast(item.sender)
            and self._clock.monotonic() - self._shared_at > _SHARED_S
        )

    @property
    def _is_idle(self) -> bool:
        """Whether a single transaction is the only work of this node."""
        lane = self.write_lane
        return (
            lane is not None
            and self.is_enabled
            and not lane.waiting
            and not self.head_lock.locked()
            and len(self._assembler.pool) == 1
        )

    def _seal_inline(self, deadline_s: float) -> bool:
        """Build and commit a block on the event loop, because a thread switch costs about as much as the block.

        Returns False if no block was made, because the transaction takes too long or cannot be included. The sealer's
        task then builds the block in a worker thread.
        """
        try:
            return self._assembler.produce_inline(deadline_s)
        except (OphionError, NativeError) as error:
            log.debug("no block made on the event loop reason=%s", error)
            return False

    async def _seal(self) -> bool:
        if self._answered is not None and self._seal_answered():
            return True
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
        """Make one block with the transactions of the pool. The caller must hold `head_lock`."""
        assembler = self._assembler
        started_at = self._clock.monotonic()
        built = await assembler.assemble(_BUILD_DEADLINE_S)
        await assembler.commit(built.header, built, started_at)
