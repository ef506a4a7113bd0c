"""`Importer`: runs `ImportCore` in the write lane (worker thread) and publishes events on the event loop.

Every block of a running node passes through the importer: from a peer, from a validator, or built by this node. The
lane runs one block at a time, so the core needs no lock. The head moves, and listeners are called, after the commit. If
a caller is cancelled during a write, the write still finishes and the event is published.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeVar

from msgspec import Struct

from ophion.chain.bad_blocks import BadBlocks
from ophion.chain.block_import import HeaderCheck, ImportCore, SenderCheck
from ophion.chain.chain import Chain
from ophion.chain.events import ChainBlock
from ophion.chain.fork_choice import HeadChange
from ophion.errors import InvalidBlock, OphionError, UnknownParent
from ophion.native.executor import Execution, State
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32
from ophion.runtime.clock import Clock
from ophion.runtime.thread_pools import Lanes

T = TypeVar("T")


class ImportOutcome(Enum):
    """Result of importing a valid block."""

    HEAD = "head"
    """The block is the new head."""
    SIDE = "side"
    """The block is on a branch that is not the best."""
    KNOWN = "known"
    """The block was in the database already."""


class ImportedBlock(Struct, frozen=True):
    """Result of importing one block, which is now in the database."""

    header: HashedHeader
    outcome: ImportOutcome
    change: HeadChange | None = None
    """Change of the canonical chain; None if it did not change."""


class ImportedBatch(Struct, frozen=True):
    """Result of importing several consecutive blocks in one batch."""

    count: int
    """Number of new blocks in the database."""
    change: HeadChange | None
    failure: OphionError | None
    """Error of the first block that was not imported: `InvalidBlock` or `UnknownParent`."""


class Importer:
    """Imports blocks one after the other."""

    def __init__(
        self,
        chain: Chain,
        lanes: Lanes,
        clock: Clock,
        keeps_revert_data: bool = False,
        check_senders: SenderCheck | None = None,
    ) -> None:
        self._chain = chain
        self._lanes = lanes
        self._core = ImportCore(chain, clock, keeps_revert_data, check_senders)

    @property
    def bad_blocks(self) -> BadBlocks:
        """Blocks that broke a rule since the start."""
        return self._core.bad_blocks

    def state_after(self, header: HashedHeader) -> State:
        """Return the state after a block, even while the block is being written. Raises `MissingState` if the state is
        pruned.
        """
        return self._core.state_after(header)

    async def check(
        self, block: ChainBlock, verify: HeaderCheck | None = None, limit_s: float | None = None
    ) -> Execution:
        """Verify and execute a block without a commit. Validators check proposals with this method.

        `verify` replaces the engine's check of sealed headers. A block that executes longer than `limit_s` is refused.
        """
        staged = await self._lanes.write.run(
            lambda: self._core.check(block.header, block.body, verify=verify, limit_s=limit_s)
        )
        return staged.execution

    async def import_block(self, block: ChainBlock) -> ImportedBlock:
        """Verify, execute and commit a block. Raises `InvalidBlock`, `UnknownParent` or `StorageError`."""
        return await self._import(block.header, block.body, None)

    async def import_built(self, header: HashedHeader, body: Body, execution: Execution) -> ImportedBlock:
        """Import a block that this node has built or checked before. Reuses the execution of the block."""
        return await self._import(header, body, execution)

    def import_built_inline(self, header: HashedHeader, body: Body, execution: Execution, encoded: bytes) -> None:
        """Import a block that was built on the head, in the calling thread: the event loop of a development node.

        Faster than `import_built`: it needs no thread switches and checks no rule again. The write lane (worker thread)
        must be idle, because the core runs in one thread at a time. `encoded` is the encoded header.
        """
        assert not self._lanes.write.waiting, "the write lane is idle"
        core = self._core
        core.stage_built(header, body, execution, encoded)
        try:
            change = core.commit()
        finally:
            core.discard()
        self._publish(change, {header.hash: body})

    async def import_batch(self, blocks: Sequence[ChainBlock]) -> ImportedBatch:
        """Verify and execute blocks, each on the state of the previous block, and commit them together.

        Stops at the first invalid block, commits the blocks before it, and returns the error in the result.
        Synchronisation uses this method, because many blocks share one write transaction and one disk flush.
        """
        return await self._in_write_lane(
            lambda: self._stage_all(blocks),
            lambda batch: self._publish(batch.change, {block.header.hash: block.body for block in blocks}),
        )

    async def run(
        self, job: Callable[[ImportCore], HeadChange | None], bodies: dict[Hash32, Body] | None = None
    ) -> None:
        """Run a job of a development node in the write lane (worker thread). Publish the change of the head that the
        job returns.

        The job may add the bodies of its blocks to `bodies`, so that publishing does not read them from the database.
        """
        await self._in_write_lane(lambda: job(self._core), lambda change: self._publish(change, bodies or {}))

    async def _import(self, header: HashedHeader, body: Body, execution: Execution | None) -> ImportedBlock:
        return await self._in_write_lane(
            lambda: self._stage_and_commit(header, body, execution),
            lambda imported: self._publish(imported.change, {header.hash: body}),
        )

    async def _in_write_lane(self, job: Callable[[], T], publish: Callable[[T], None]) -> T:
        """Run a job that commits, and publish its result, even if the caller is cancelled.

        Block priority is on from the end of the commit until all listeners have run.
        """
        block_priority = self._lanes.block_priority

        def work() -> T:
            done = job()
            block_priority.begin()
            return done

        working = self._lanes.write.submit(work)
        block_priority.end()
        try:
            done = await asyncio.shield(working)
        except asyncio.CancelledError:
            working.add_done_callback(lambda finished: _publish_abandoned(finished, publish))
            raise
        publish(done)
        block_priority.end()
        return done

    def _publish(self, change: HeadChange | None, bodies: dict[Hash32, Body]) -> None:
        if change is not None:
            self._chain.advance(change, bodies)

    def _stage_all(self, blocks: Sequence[ChainBlock]) -> ImportedBatch:
        core, staged = self._core, 0
        failure: OphionError | None = None
        try:
            for block in blocks:
                if core.is_known(block.header.hash):
                    continue
                try:
                    core.stage(block.header, block.body)
                except (InvalidBlock, UnknownParent) as error:
                    failure = error
                    break
                staged += 1
            return ImportedBatch(staged, core.commit(), failure)
        finally:
            core.discard()

    def _stage_and_commit(self, header: HashedHeader, body: Body, execution: Execution | None) -> ImportedBlock:
        core = self._core
        if core.is_known(header.hash):
            return ImportedBlock(header, ImportOutcome.KNOWN)
        core.stage(header, body, execution)
        try:
            change = core.commit()
        finally:
            # a failed commit leaves its blocks staged: discard them, because a later commit would write them
            core.discard()
        if change is None:
            return ImportedBlock(header, ImportOutcome.SIDE)
        return ImportedBlock(header, ImportOutcome.HEAD, change)


def _publish_abandoned(finished: asyncio.Future[T], publish: Callable[[T], None]) -> None:
    if not finished.cancelled() and finished.exception() is None:
        publish(finished.result())
