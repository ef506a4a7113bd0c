"""Executes the next block while its transactions arrive, so that little is left to do when it is due.

    IncrementalBuilder(plan)  parent and due time are known; nothing happens while the pool is empty
    every few milliseconds    the build lane runs new transactions of the pool; sometimes it hashes the state
    finish(draft)             the block is due: runs the last transactions, computes roots. None: build it again

The parent may not be on disk yet. Until the parent is in the chain, the block takes only new arrivals. Later the block
also takes the transactions that the parent left in the pool. The pool does not change before the block is finished, so
discarding an unfinished block wastes only its execution.

Order and fairness (decision 91): transactions are in order of arrival while all of them fit. If an excluded transaction
pays more than an included transaction, the builder starts the block again with the best transactions first. The same
happens when an included transaction is replaced in the pool.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ophion.chain.ancestor_hashes import ancestor_hashes
from ophion.chain.block_builder import TOO_LONG, BlockBuilder, BuiltBlock, DraftBlock
from ophion.chain.chain import Chain
from ophion.chain.events import ChainEvent
from ophion.chain.validation import MAX_BLOCK_SIZE
from ophion.native.executor import State, TakeResult
from ophion.native.transactions import Transaction
from ophion.permissions.permissions import Permissions
from ophion.pool.events import Added, DropReason, PoolEvent
from ophion.pool.pool import TxPool
from ophion.pool.queue import PooledTransaction
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address, Hash32
from ophion.runtime.clock import Clock
from ophion.runtime.thread_pools import Lanes

log = logging.getLogger(__name__)

HEADER_BYTES: Final = 16_384
"""Bytes of a block that are not transactions: header, withdrawals, list prefixes."""
_PACE_S: Final = 0.05
"""Seconds between two checks for new transactions."""
_BATCH: Final = 1024
"""Limit of transactions per batch. The end of the block may have to wait for one running batch."""
_SETTLED: Final = 1024
"""Number of transactions between two state hashes. With a lower number, the same accounts are hashed more often."""
_CLOSING_S: Final = 0.1
"""Last seconds before the block is due, in which the state is hashed after every batch."""
_LAST_LOOK_S: Final = 0.02
"""Seconds from the last check for new transactions to the due time of the block. `finish` runs later arrivals."""
_CLOSED_S: Final = 0.008
"""Last seconds before the block is due, in which no batch starts, so that `finish` does not wait for a batch."""
_LAST_S: Final = 0.05
"""Time limit in seconds for executing the last arrivals when the block is due. Later arrivals wait for the next
block.
"""
_MAX_BEGINNINGS: Final = 3
"""Maximum number of starts of one block, because endless replacements would keep a core busy. After that, the block is
built when due.
"""


class BuildPlan(Struct, frozen=True):
    """The properties of a block that are known before it is due."""

    parent: HashedHeader
    state: State
    """State after the parent block."""
    draft: Header
    beneficiary: Address
    """Address that earns the fees."""
    due: float
    """When to finish the block, in monotonic time."""
    whole_s: float
    """Build time limit of a block in seconds. A transaction that runs longer is never included."""


class FilledBlock(Struct, frozen=True):
    """A block, and the reasons why offered transactions were excluded."""

    built: BuiltBlock
    skipped: Mapping[Hash32, str]
    refused: Mapping[Hash32, str]


class _BuildStep(Struct, frozen=True):
    """Result of executing one batch of transactions."""

    offered: Sequence[PooledTransaction]
    taken: TakeResult
    refused: Mapping[Hash32, str]


def permitted(candidates: Sequence[Transaction], refusals: Mapping[int, str]) -> Sequence[int]:
    """Return the positions of the candidates to include. Leaves out refused candidates and the later candidates of
    their senders.
    """
    if not refusals:
        return range(len(candidates))
    stopped: set[Address] = set()
    chosen = []
    for position, transaction in enumerate(candidates):
        if position in refusals:
            stopped.add(transaction.sender)
        elif transaction.sender not in stopped:
            chosen.append(position)
    return chosen


class IncrementalBuilder:
    """Builds one future block. Must be created and used on the event loop."""

    def __init__(
        self,
        plan: BuildPlan,
        chain: Chain,
        builder: BlockBuilder,
        pool: TxPool,
        permissions: Permissions,
        lanes: Lanes,
        clock: Clock,
        first: PooledTransaction | None = None,
    ) -> None:
        """Create the incremental builder. `first` is a transaction that did not finish in the previous block. This
        transaction gets the whole build time.
        """
        self.plan = plan
        self.unfinished: PooledTransaction | None = None
        """The transaction that was still running when the block was due."""
        self._chain = chain
        self._builder = builder
        self._pool = pool
        self._permissions = permissions
        self._lane = lanes.build
        self._block_priority = lanes.block_priority
        self._clock = clock
        self._first = first
        self._base_fee = plan.draft.base_fee_per_gas or 0
        self._is_published = chain.head.hash == plan.parent.hash
        self.is_closed = False
        """Whether the block was discarded."""
        self._is_due = False
        self._is_outdated = False
        self._beginnings = 0
        self._job: asyncio.Future[_BuildStep] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._begin()
        self._ignore = [pool.events.listen(self._on_pool_event), chain.events.listen(self._on_chain_event)]
        self._schedule()

    def _begin(self) -> None:
        """Start the build with an empty block."""
        self._beginnings += 1
        self._is_outdated = False
        self._block: DraftBlock | None = None
        self._in: dict[Hash32, PooledTransaction] = {}
        self._running: set[Hash32] = set()
        # `_known` holds transactions that need no second check: included, permanently excluded, or queued to run
        self._known: set[Hash32] = set()
        self._skipped: dict[Hash32, str] = {}
        self._refused: dict[Hash32, str] = {}
        self._free_bytes = MAX_BLOCK_SIZE - HEADER_BYTES
        self._is_full = False
        self._lowest: int | None = None
        self._left_out = -1
        self._unsettled = 0
        self._arrived: list[PooledTransaction] = []
        self._ready: deque[PooledTransaction] = deque()
        # read the pool only after the parent is published, because the pool may still hold transactions of the parent
        self._must_look = self._is_published

    def close(self) -> None:
        """Stop adding transactions and discard the block. While `finish` is running, the block stays until `finish`
        ends.
        """
        self.is_closed = True
        while self._ignore:
            self._ignore.pop()()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._release()

    def _release(self) -> None:
        """Drop the block and its state, unless a job still uses them. An open state would keep the database from
        reusing pages.
        """
        if self.is_closed and not self._is_due and self._job is None:
            self._block = None

    # --- events -------------------------------------------------------------------------------------

    def _on_chain_event(self, event: ChainEvent) -> None:
        if event.head.hash != self.plan.parent.hash:
            self.close()
            return
        self._is_published = self._must_look = True
        self._schedule()

    def _on_pool_event(self, event: PoolEvent) -> None:
        if isinstance(event, Added):
            if not self._must_look:
                self._arrived.extend(event.transactions)
            self._schedule()
        # a transaction that the pool evicts or expires stays valid in the block
        elif event.reason is not DropReason.EVICTED and event.reason is not DropReason.EXPIRED:
            changed = (item.hash for item in event.transactions)
            self._is_outdated |= any(hash in self._in or hash in self._running for hash in changed)

    def _schedule(self) -> None:
        if self._timer is None and self._job is None and not self.is_closed:
            left_s = self.plan.due - _LAST_LOOK_S - self._clock.monotonic()
            pace_s = min(_PACE_S, left_s) if left_s > 0 else _PACE_S
            self._timer = asyncio.get_running_loop().call_later(pace_s, self._feed)

    # --- adding transactions ------------------------------------------------------------------------

    def _feed(self) -> None:
        """Run the transactions that have arrived since the last batch."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        left_s = self.plan.due - self._clock.monotonic()
        if self.is_closed or self._is_due or self._job is not None or left_s <= _CLOSED_S:
            return
        batch = self._next(_BATCH)
        if self._beginnings < _MAX_BEGINNINGS and (self._is_outdated or self._is_outbid()):
            self._begin()
            batch = self._next(_BATCH)
        if self._is_outdated or not batch:
            return
        self._running = {item.hash for item in batch}
        settled = _SETTLED if left_s > _CLOSING_S else 1
        self._job = self._lane.submit(partial(self._run, batch, min(left_s, self.plan.whole_s), settled))
        self._job.add_done_callback(partial(self._on_fed, left_s >= self.plan.whole_s))

    def _next(self, most: int) -> list[PooledTransaction]:
        """Return the next batch: at the start all pending transactions, best first; later the new arrivals."""
        self._enqueue_new()
        ready, pool = self._ready, self._pool
        batch: list[PooledTransaction] = []
        if self._is_full:
            while ready:
                self._leave_out(ready.popleft())
        free_bytes = self._free_bytes
        while ready and len(batch) < most:
            item = ready.popleft()
            if pool.get(item.hash) is None:
                continue
            if item.size > free_bytes:
                self._leave_out(item)
                continue
            free_bytes -= item.size
            batch.append(item)
        return batch

    def _enqueue_new(self) -> None:
        """Append new executable transactions to the queue."""
        pool, known, base_fee = self._pool, self._known, self._base_fee
        arrived, self._arrived = self._arrived, []
        if self._must_look:
            self._must_look = False
            found = pool.best(base_fee)
            if self._first is not None and pool.get(self._first.hash) is not None:
                self._stand(self._first)
            self._first = None
            for item in found:
                self._stand(item)
            return
        for one in arrived:
            if one.hash not in known:
                # the transaction may fill a nonce gap, so also add the next transactions of its sender
                for item in pool.run_from(one, base_fee):
                    if item.hash in known:
                        break
                    self._stand(item)

    def _stand(self, item: PooledTransaction) -> None:
        if item.hash not in self._known:
            self._known.add(item.hash)
            self._ready.append(item)

    def _leave_out(self, item: PooledTransaction) -> None:
        """Note the tip of a transaction that is excluded because it does not fit into the block."""
        self._left_out = max(self._left_out, item.tip(self._base_fee))

    def _run(self, batch: Sequence[PooledTransaction], deadline_s: float, settled: int) -> _BuildStep:
        """Run a batch in the build lane (worker thread). Afterwards hashes the state if at least `settled` transactions
        were added since the last hash.
        """
        plan = self.plan
        if self._block is None:
            hashes = None if self._is_published else ancestor_hashes(self._chain.store, self._chain.header, plan.parent)
            self._block = self._builder.open(plan.draft, plan.state, plan.beneficiary, hashes)
        transactions = [item.transaction for item in batch]
        refusals = self._permissions.refusals(plan.parent, plan.state, transactions)
        chosen = permitted(transactions, refusals)
        taken = self._block.take([transactions[position] for position in chosen], deadline_s)
        self._unsettled += len(taken.included)
        if self._unsettled >= settled:
            self._unsettled = 0
            self._block.settle()
        offered = batch if len(chosen) == len(batch) else [batch[position] for position in chosen]
        return _BuildStep(offered, taken, {batch[position].hash: reason for position, reason in refusals.items()})

    def _on_fed(self, had_whole_time: bool, job: asyncio.Future[_BuildStep]) -> None:
        """Record which transactions of a batch the block includes, then run the next batch."""
        self._job = None
        if self.is_closed:
            self._release()
            return
        if job.cancelled() or job.exception() is not None:
            # log this error only at debug level, because the full build reports the same error to its caller
            log.debug("incremental block build failed error=%s", None if job.cancelled() else job.exception())
            self.close()
            return
        self._note(job.result(), had_whole_time)
        if self._ready:
            # one batch did not hold all new transactions, so run the remaining ones now
            self._feed()
        elif self._arrived or self._must_look or self._is_outdated or self._is_contested:
            self._schedule()

    def _note(self, step: _BuildStep, had_whole_time: bool) -> None:
        offered, taken = step.offered, step.taken
        self._running = set()
        self._refused.update(step.refused)
        included, base_fee = [offered[position] for position in taken.included], self._base_fee
        if included:
            self._in.update([(item.hash, item) for item in included])
            self._free_bytes -= sum([item.size for item in included])
            lowest = min([item.tip(base_fee) for item in included])
            self._lowest = lowest if self._lowest is None else min(lowest, self._lowest)
        for position, reason in taken.skipped:
            self._skipped[offered[position].hash] = reason
        for position in taken.early:
            # forget this transaction: it is queued again when the transaction with the previous nonce is in the block
            self._known.discard(offered[position].hash)
        for position in taken.unfit:
            self._leave_out(offered[position])
        if taken.unfinished is not None:
            item = offered[taken.unfinished]
            if had_whole_time and taken.unfinished == 0:
                self._skipped[item.hash] = TOO_LONG
            else:
                self.unfinished = item
        self._is_full |= taken.is_full
        self._ready.extendleft(reversed(offered[taken.seen :]))

    @property
    def _is_contested(self) -> bool:
        """Whether an excluded transaction may pay more than an included transaction. Faster than `_is_outbid`, but not
        exact.
        """
        return self._lowest is not None and self._left_out > self._lowest

    def _is_outbid(self) -> bool:
        """Whether an excluded transaction pays more than an included transaction. Ignores transactions behind a
        cheaper transaction of the same sender.
        """
        if not self._is_contested:
            return False
        ahead = 0
        for item in self._pool.best(self._base_fee):
            if item.hash in self._in:
                ahead += 1
            elif item.hash not in self._skipped:
                return ahead < len(self._in) and item.tip(self._base_fee) > (self._lowest or 0)
        return False

    # --- finishing ------------------------------------------------------------------------------

    async def finish(self, draft: Header, beneficiary: Address) -> FilledBlock | None:
        """Return the block with all transactions that have arrived. Returns None if the block must be built again.
        `draft` is the header of the block; values that transactions can read must be as planned.
        """
        self._is_due = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            while self._job is not None:
                await asyncio.wait({self._job})
                await asyncio.sleep(0)
            if self.is_closed or self._is_outdated or not self._is_published:
                return None
            if beneficiary != self.plan.beneficiary or not _is_same(draft, self.plan.draft):
                return None
            if self._block is None:
                return None
            batch = self._next(len(self._pool))
            if self._is_outbid():
                return None
        finally:
            # stop adding transactions on the event loop, because from now on only the worker thread uses the block
            self.close()
        built = await self._lane.run(partial(self._complete, batch, draft))
        if built is None and not self._is_outbid():
            built = await self._lane.run(partial(self._block.complete, draft))
        return None if built is None else FilledBlock(built, self._skipped, self._refused)

    def _complete(self, batch: Sequence[PooledTransaction], draft: Header) -> BuiltBlock | None:
        """Run the last batch in the build lane (worker thread), then finish. Returns None if the block must be built
        again.
        """
        assert self._block is not None, "something has been run already"
        if batch:
            # run the batch without hashing the state, because `complete` hashes the whole state
            self._note(self._run(batch, _LAST_S, sys.maxsize), False)
        built = None if self._is_contested else self._block.complete(draft)
        self._block_priority.begin()
        return built


def _is_same(draft: Header, planned: Header) -> bool:
    """Whether transactions read the same values from both headers. The beneficiary is not compared."""
    return draft == replace(planned, extra_data=draft.extra_data, nonce=draft.nonce, coinbase=draft.coinbase)
