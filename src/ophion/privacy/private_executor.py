"""`PrivateExecutor`: executes private transactions behind the canonical chain.

One task walks from the block it reached last to the head. It finds markers, reads their payloads from the enclave and
executes the payloads in a worker thread. It writes states, receipts and its position together. A reorganisation undoes
nothing, because results are stored under block hashes. The walk resumes at the common ancestor.

While a remote enclave is offline, this task waits and repeats its requests. Block import continues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from ophion.chain.chain import Chain
from ophion.chain.events import ChainEvent
from ophion.chain.queries import BlockView
from ophion.enclave.interface import Enclave
from ophion.native.privacy import PrivateBatch, PrivateLedger
from ophion.native.tracing import TraceStream
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address, Hash32
from ophion.privacy.backlog import MAX_WALK_GAS, Backlog, by_group, gas_of
from ophion.privacy.backlog_executor import BacklogExecutor, executions
from ophion.privacy.execution_events import ExecutedTransaction, ExecutorAdvanced
from ophion.privacy.late_payloads import LatePayloads
from ophion.privacy.marker_settings import has_new_keys, store_keys, warn_of_missed_markers
from ophion.privacy.options import DEFAULT_MAX_GAS
from ophion.privacy.payload_handover import PayloadHandover
from ophion.privacy.payload_retries import MAX_REMEMBERED, PayloadRetries
from ophion.privacy.payloads import MarkerPosition, Payload, Payloads
from ophion.runtime.clock import Clock, SystemClock
from ophion.runtime.thread_pools import Lane, Lanes
from ophion.runtime.topic import Topic

log = logging.getLogger(__name__)

_BLOCKS_AT_ONCE: Final = 128
_MARKERS_AT_ONCE: Final = 4096
_HISTORY_S: Final = 1.0
"""Seconds between two checks whether the bodies of the next blocks are downloaded."""


class ExecutionCounts(Struct):
    """Counters of private execution since the start."""

    markers: int = 0
    executed: int = 0
    late: int = 0


class PrivateExecutor:
    """Advances private states along the canonical chain."""

    name = "private transactions"

    def __init__(
        self,
        chain: Chain,
        enclave: Enclave,
        lanes: Lanes,
        precompile: Address,
        always_increments: bool = False,
        is_flexible: bool = False,
        max_gas: int = DEFAULT_MAX_GAS,
        clock: Clock | None = None,
    ) -> None:
        self.ledger = PrivateLedger(chain.store)
        self.events: Topic[ExecutorAdvanced] = Topic()
        self.counts = ExecutionCounts()
        self.payloads = Payloads(chain.store, enclave, is_flexible)
        self.backlog = Backlog(clock or SystemClock(), max_gas)
        self._clock = clock or SystemClock()
        self.backlog_executor = BacklogExecutor(self, chain, lanes, self.backlog, self._clock)
        self.hand_overs = PayloadHandover(chain.store, self.ledger, self.payloads, lanes)
        self._chain = chain
        self._enclave = enclave
        self._lanes = lanes
        self._precompile = precompile
        self._always_increments = always_increments
        self.late = LatePayloads(self, chain, lanes)
        self._retries = PayloadRetries(self.late.request_payloads)
        self._missed: list[bytes] = []
        """Keys of the payloads that were missing in the current step."""
        self._wake = asyncio.Event()
        self._moved: asyncio.Future[None] | None = None
        """Future that is resolved after the next step. Other tasks wait for this future."""
        self._mark = self.ledger.followed() or (chain.genesis.hash, 0)
        self._written = self._mark
        chain.events.listen(self._on_chain_event)
        enclave.on_late = self._on_late

    # --- queries --------------------------------------------------------------------------------

    @property
    def is_waiting_for_enclave(self) -> bool:
        """Whether a remote enclave is offline and private states fall behind."""
        return self.payloads.is_waiting

    @property
    def number(self) -> int:
        """Number of the last block that private execution has reached."""
        return self._mark[1]

    @property
    def is_at_head(self) -> bool:
        """Whether private states have reached the head."""
        return self._mark[0] == self._chain.head.hash

    async def wait_for_group(self, group: bytes, limit_s: float) -> None:
        """Wait until the backlog has executed a group, for at most `limit_s` seconds."""
        await self.backlog.wait(group, limit_s)

    async def reach_head(self, limit_s: float) -> bool:
        """Wait until private states reach the current head. Returns False after `limit_s` seconds."""
        wanted, loop = self._chain.head.number, asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        while not self._has_reached(wanted):
            left = deadline - loop.time()
            if left <= 0:
                return False
            if self._moved is None:
                self._moved = loop.create_future()
            # wait with `asyncio.wait`, because `asyncio.timeout` needs a task, and requests start outside of a task
            await asyncio.wait({self._moved}, timeout=left)
        return True

    def _has_reached(self, number: int) -> bool:
        hash, reached = self._mark
        return self.is_at_head or (reached >= number and self._chain.store.canonical_hash(reached) == hash)

    # --- walk along the chain -------------------------------------------------------------------

    def wake(self) -> None:
        """Make the executor look for new blocks and payloads."""
        self._wake.set()

    def _on_chain_event(self, event: ChainEvent) -> None:
        self._wake.set()

    def _on_late(self, keys: Sequence[bytes]) -> None:
        self._wake.set()
        if not self._enclave.reports_late_payloads:
            self._retries.retry_now()

    async def run(self, ready: Callable[[], None]) -> None:
        """Follow the chain until cancelled."""
        ready()
        store, write = self._chain.store, self._lanes.write
        has_followed = self.ledger.followed() is not None
        await warn_of_missed_markers(store, write, self._precompile, self.payloads.is_flexible, has_followed)
        if self._enclave.reports_late_payloads:
            if has_new_keys(store, self._enclave.keys):
                # the enclave has new keys, which may open payloads of past markers: ask for these payloads again
                await self.late.request_missing()
                await store_keys(store, write, self._enclave.keys)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.backlog_executor.run(), name="private backlog")
                tasks.create_task(self._follow(), name="private transactions")
            return
        # also ask again for payloads that were already missing before this start of the node
        unread, _ = await self._lanes.private.run(partial(self.ledger.unread, b"", MAX_REMEMBERED))
        self._retries.missed(unread)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._retries.run(), name="late payloads")
            tasks.create_task(self.backlog_executor.run(), name="private backlog")
            tasks.create_task(self._follow(), name="private transactions")

    async def _follow(self) -> None:
        while True:
            self._wake.clear()
            while not self.is_at_head:
                await self._step()
            await self.late.settle()
            if not self._wake.is_set():
                await self._wake.wait()
            await asyncio.sleep(0)  # let block import run before the next step

    async def _step(self) -> None:
        """Advance private execution by one batch of blocks, at most to the head."""
        if self._chain.history_start > self._mark[1] + 1:
            # wait, because markers are read from the oldest block on, but old bodies are downloaded from the newest
            # block on
            await asyncio.sleep(_HISTORY_S)
            return
        removed = self._rewind()
        self.backlog.begin_step()
        blocks, markers = await self._lanes.private.run(self._scan)
        if not blocks:
            return
        if markers and self.payloads.is_flexible and await self.hand_overs.take(block.hash for block in blocks):
            # a marker has added this node to a group and handed over the group's earlier transactions: execute these
            # first
            await self.late.settle()
        executed: list[ExecutedTransaction] = []
        if markers:
            batch = self.new_batch()
            handed = self.hand_overs.places(markers) if self.payloads.is_flexible else []
            batch.note_markers([place.row() for place in (*markers, *handed)])
            for block in blocks:
                executed += await self.run_block(batch, block, [one for one in markers if one.block == block.hash])
            last = blocks[-1]
            await self.write(batch, (last.hash, last.number))
            await self._note_deferred(markers)
            # ask for missing payloads again only after the write: a payload that is found is recorded as late, and for
            # this its marker must be in the database
            self._retries.missed(self._missed)
            self._missed.clear()
            # store the handed-over payloads again, because a payload that arrived during the write is not recorded
            # as late yet
            await self.hand_overs.take(place.block for place in handed)
        else:
            self._mark = (blocks[-1].hash, blocks[-1].number)
            if self._mark[1] >= self._written[1] + _BLOCKS_AT_ONCE:
                await self.write(self.new_batch(), self._mark)
        self.counts.markers += len(markers)
        self.counts.executed += len(executed)
        self.publish((*removed, *executed))

    def publish(self, executed: tuple[ExecutedTransaction, ...]) -> None:
        if self._moved is not None:
            self._moved.set_result(None)
            self._moved = None
        if self.events.has_listeners:
            self.events.publish(ExecutorAdvanced(executed, self._mark[0]))

    def _rewind(self) -> list[ExecutedTransaction]:
        """Return to the canonical chain after a reorganisation. Returns the undone results if there are listeners."""
        undone: list[ExecutedTransaction] = []
        hash, number = self._mark
        while number > 0 and self._chain.store.canonical_hash(number) != hash:
            if self.events.has_listeners:
                undone += reversed(self._executed_in(hash, number))
            header = self._chain.header(hash)
            assert header is not None, "an executed block is in the database"
            hash, number = header.header.parent_hash, number - 1
        if (hash, number) != self._mark:
            self.backlog.rewind(number)
        self._mark = (hash, number)
        return undone

    def _executed_in(self, block: Hash32, number: int) -> list[ExecutedTransaction]:
        found = []
        for place in self.markers_in(block, number):
            receipt = self.ledger.receipt(block, place.hash)
            if receipt is not None:
                found.append(ExecutedTransaction(receipt.group, place, is_removed=True))
        return found

    def markers_in(self, block: Hash32, number: int) -> list[MarkerPosition]:
        """Return every marker of a block, including markers for other participants."""
        rows = self.ledger.markers_in(block, number, self._precompile, self.payloads.is_flexible)
        return [MarkerPosition(*row) for row in rows]

    def _scan(self) -> tuple[list[HashedHeader], list[MarkerPosition]]:
        """Return the next blocks and their markers. Runs in a worker thread."""
        blocks: list[HashedHeader] = []
        markers: list[MarkerPosition] = []
        parent, head = self._mark[0], self._chain.head.number
        for number in range(self._mark[1] + 1, min(head, self._mark[1] + _BLOCKS_AT_ONCE) + 1):
            header = self._chain.canonical(number)
            # stop at a block that does not follow the block before: a reorganisation has begun, and the next step
            # handles it
            if header is None or header.header.parent_hash != parent:
                break
            parent = header.hash
            blocks.append(header)
            markers += self.markers_in(header.hash, number)
            if len(markers) >= _MARKERS_AT_ONCE:
                break
        return blocks, markers

    async def run_block(
        self, batch: PrivateBatch, block: HashedHeader, places: list[MarkerPosition], only: bytes | None = None
    ) -> list[ExecutedTransaction]:
        """Run the payloads of a block that this node can read. The payloads of a group that needs the backlog are put
        into the backlog instead. With `only`, process only the payloads of that group.
        """
        payloads = await self.load_payloads(places, only)
        done: list[Payload] = []
        waiting: dict[bool, list[Payload]] = {True: [], False: []}
        """Payloads that run together, by whether their groups are established."""

        async def flush(is_established: bool) -> None:
            chunk, waiting[is_established] = waiting[is_established], []
            if chunk:
                began = self._clock.monotonic()
                await self.run_payloads(self._lanes.private, batch, block, chunk)
                self.backlog.charge_walk(chunk, self._clock.monotonic() - began, is_established)
                done.extend(chunk)

        for group, theirs in by_group(payloads).items():
            is_established = self.backlog_executor.is_established(group, block.number)
            if self.backlog.needs_backlog(theirs, is_established):
                self.backlog.put(block.number, theirs, is_established)
                continue
            waiting[is_established] += theirs
            if sum(map(gas_of, waiting[is_established])) > MAX_WALK_GAS:
                await flush(is_established)
        await flush(True)
        await flush(False)
        return executions(done, places)

    async def run_payloads(self, lane: Lane, batch: PrivateBatch, block: HashedHeader, payloads: list[Payload]) -> None:
        view = BlockView(self._chain, block.header, block.hash)
        await lane.run(lambda: batch.run_block(view.state, view.env, block.hash, payloads))

    # --- backlog ----------------------------------------------------------------------------------

    async def _note_deferred(self, markers: Sequence[MarkerPosition]) -> None:
        """Wake the backlog. With a remote enclave, first record the payloads in the backlog as late, so that a
        restarted node executes them. With an embedded enclave, the database has already recorded them.
        """
        if not self._enclave.reports_late_payloads:
            keys = [place.payload_key for place in markers if self.backlog.group_of(place.payload_key) is not None]
            if keys:
                await self._lanes.write.run(partial(self.ledger.note_late, keys))
        self.backlog.wake()

    def new_batch(self) -> PrivateBatch:
        chain = self._chain
        return PrivateBatch(chain.store, chain_id=chain.spec.chain_id, always_increments=self._always_increments)

    async def load_payloads(self, places: list[MarkerPosition], only: bytes | None) -> list[Payload]:
        """Return the payloads of these markers that this node can read, in the form that the Rust extension expects.

        With `only`, return the payloads of that group. Without `only`, remember which payloads a remote enclave lacks,
        so that `PayloadRetries` asks for them again.
        """
        read = await self.payloads.read([place.payload_key for place in places])
        if only is None and not self._enclave.reports_late_payloads:
            self._missed += [place.payload_key for place, one in zip(places, read, strict=True) if one is None]
        wanted = [(place, one) for place, one in zip(places, read, strict=True) if one and only in (None, one.group)]
        return [await self.payloads.prepared(place, one) for place, one in wanted]

    async def trace(self, place: MarkerPosition, group: bytes, limit_s: float) -> Callable[[], TraceStream]:
        """Return a function that starts a trace of an executed transaction."""
        places = [one for one in self.markers_in(place.block, place.number) if one.index <= place.index]
        payloads = await self.load_payloads(places, group)
        header = self._chain.header(place.block)
        assert header is not None, "the block of a marker is in the database"
        view = BlockView(self._chain, header.header, header.hash)
        batch = self.new_batch()
        return lambda: batch.trace(view.state, view.env, header.hash, payloads, limit_s)

    async def write(
        self, batch: PrivateBatch, followed: tuple[Hash32, int] | None, settled: Sequence[bytes] = ()
    ) -> None:
        await self._lanes.write.run(lambda: batch.commit(self._chain.store, followed, list(settled)))
        if followed is not None:
            self._mark = self._written = followed

    def has_receipt(self, place: MarkerPosition) -> bool:
        return self.ledger.receipt(place.block, place.hash) is not None
