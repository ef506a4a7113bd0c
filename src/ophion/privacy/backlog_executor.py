"""`BacklogExecutor`: executes the groups of the backlog in its own worker threads, a slice at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ophion.chain.chain import Chain
from ophion.privacy.backlog import ESTABLISHED_BLOCKS, Backlog, BehindGroup
from ophion.privacy.execution_events import ExecutedTransaction
from ophion.privacy.payloads import MarkerPosition, Payload
from ophion.runtime.clock import Clock
from ophion.runtime.thread_pools import Lanes

if TYPE_CHECKING:
    from ophion.privacy.private_executor import PrivateExecutor

_ALL_BLOCKS: Final = 1 << 62
_MAX_ESTABLISHED: Final = 65_536


class BacklogExecutor:
    """Executes the backlog, up to the block that the `PrivateExecutor` has reached."""

    def __init__(self, executor: PrivateExecutor, chain: Chain, lanes: Lanes, backlog: Backlog, clock: Clock) -> None:
        self._executor = executor
        self._chain = chain
        self._lanes = lanes
        self._backlog = backlog
        self._clock = clock
        self._established: set[bytes] = set()

    def is_established(self, group: bytes, number: int) -> bool:
        """Whether a group is established at a block: its first transaction is at least `ESTABLISHED_BLOCKS` blocks
        older.
        """
        if group not in self._established:
            first = self._executor.ledger.blocks(group, 0, 1)
            if not first or first[0][0] + ESTABLISHED_BLOCKS > number:
                return False
            if len(self._established) >= _MAX_ESTABLISHED:
                self._established.clear()
            self._established.add(group)
        return True

    async def run(self) -> None:
        """Execute the groups of the backlog, a slice at a time, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._run(True), name="private backlog of established groups")
            tasks.create_task(self._run(False), name="private backlog of new groups")

    async def _run(self, is_established: bool) -> None:
        event = self._backlog.event(is_established)
        while True:
            event.clear()
            found = self._backlog.next(self._executor.number, is_established)
            if found is None:
                await event.wait()
                continue
            began = self._clock.monotonic()
            payloads = await self._run_slice(*found)
            self._backlog.budget.charge(payloads, self._clock.monotonic() - began)
            await asyncio.sleep(0)

    async def _run_slice(self, group: bytes, behind: BehindGroup) -> list[Payload]:
        """Run some payloads of a group, and write the results of a block when the block is complete."""
        if not behind.todo and not await self._next_block(group, behind):
            return []
        batch, block = behind.batch, behind.block
        payloads = self._backlog.slice(behind)
        if not payloads or batch is None or block is None:
            return []
        await self._executor.run_payloads(self._lanes.private_backlog, batch, block, payloads)
        if behind.batch is not batch:  # a reorganisation has discarded the block during the execution
            return payloads
        del behind.todo[: len(payloads)]
        if behind.todo:
            return payloads
        await self._executor.write(batch, None)
        if behind.batch is batch and self._chain.store.canonical_hash(block.number) == block.hash:
            behind.batch, behind.first = None, block.number + 1
            behind.blocks.discard(block.number)
            self._executor.counts.executed += len(behind.executed)
            self._executor.publish(tuple(behind.executed))
        return payloads

    async def _next_block(self, group: bytes, behind: BehindGroup) -> bool:
        """Load the next block of a group. Returns False if the block has no payload, or no block is left to run."""
        known = {number for number, _ in self._executor.ledger.blocks(group, behind.first, _ALL_BLOCKS)}
        waiting = {number for number in known | behind.blocks if number >= behind.first}
        header = self._chain.canonical(min(waiting)) if waiting and min(waiting) <= self._executor.number else None
        if header is None:
            if not any(number > self._executor.number for number in waiting):
                keys = list(behind.keys)
                await self._executor.write(self._executor.new_batch(), None, keys)
                if len(keys) == len(behind.keys) and not any(one >= behind.first for one in behind.blocks):
                    self._backlog.finish(group)
            return False
        places = self._executor.markers_in(header.hash, header.number)
        payloads = await self._executor.load_payloads(places, group)
        batch = self._executor.new_batch()
        batch.rewind(group, header.number)
        behind.batch, behind.block, behind.todo = batch, header, payloads
        late = {place.hash for place in places if not self._executor.has_receipt(place)}
        behind.executed = [one for one in executions(payloads, places) if one.place.hash in late]
        if not payloads:
            behind.first = header.number + 1
            behind.blocks.discard(header.number)
        return bool(payloads)


def executions(payloads: Sequence[Payload], places: Sequence[MarkerPosition]) -> list[ExecutedTransaction]:
    by_hash = {place.hash: place for place in places}
    return [ExecutedTransaction(payload[3], by_hash[payload[0]]) for payload in payloads]
