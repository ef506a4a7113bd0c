"""`DevSealer`: decides when a development node makes blocks."""

from __future__ import annotations

import asyncio
import logging

from ophion.native.exceptions import SourceFailed
from ophion.producer.block_assembly import Assembler
from ophion.producer.instant_sealer import InstantSealer

log = logging.getLogger(__name__)

_BUILD_DEADLINE_S = 5.0


class DevSealer(InstantSealer):
    """Makes blocks automatically for each transaction, at an interval, or on demand."""

    def __init__(self, assembler: Assembler, is_automatic: bool, interval_s: float) -> None:
        super().__init__(assembler)
        self.head_lock = asyncio.Lock()
        """Held by everything that moves the head or edits its state."""
        self.is_automatic = is_automatic
        self.interval_s = interval_s
        """Seconds between blocks; 0 when interval mining is off."""
        self._changed = asyncio.Event()

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

    async def _seal(self) -> bool:
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
        """Make one block, as `make_block`; the caller already holds the lock."""
        assembler = self._assembler
        started_at = self._clock.monotonic()
        built = await assembler.assemble(_BUILD_DEADLINE_S)
        await assembler.commit(built.header, built, started_at)
