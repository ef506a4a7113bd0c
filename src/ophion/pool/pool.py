"""`TxPool`: pending transactions, from admission to the block that mines them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from ophion.chain.events import ChainEvent, Reorged
from ophion.chain.gas_price import FeeFloor
from ophion.native.transactions import Transaction
from ophion.pool.admission import BLOB_TYPE, PoolHead, blobs_are_there, undecodable
from ophion.pool.admitter import AdmissionBatch, Admitter, LocalRule
from ophion.pool.blob_store import BlobStore
from ophion.pool.content import PoolContent, PoolStatistics, content_of
from ophion.pool.dropped_transactions import DroppedTransactions
from ophion.pool.events import Added, Admission, Admitted, Dropped, DropReason, Origin, PoolEvent, Rejected
from ophion.pool.intake import Arrival, BatchSubmission, PoolIntake, SingleSubmission
from ophion.pool.journal import TransactionJournal
from ophion.pool.local_transactions import LocalTransactions
from ophion.pool.options import PoolConfig
from ophion.pool.queue import PooledTransaction, Queue
from ophion.primitives.types import Address, Hash32
from ophion.runtime.clock import Clock
from ophion.runtime.thread_pools import Lanes
from ophion.runtime.topic import Topic
from ophion.runtime.transaction_decoding import Decoded

log = logging.getLogger(__name__)

_SWEEP_INTERVAL_S = 60.0
_SYNC_INTERVAL_S = 1.0
_RELEASED_PER_STEP = 64
"""Number of mined transactions that are freed with each batch. Freeing thousands at once would block the event loop."""


class TxPool:
    """Pending transactions. Runs on the event loop.

    `version` changes with every change of content, so that a cached pending block can be recognised as stale.
    """

    name = "pool"

    def __init__(
        self,
        config: PoolConfig,
        floor: FeeFloor,
        lanes: Lanes,
        clock: Clock,
        head: PoolHead,
        refusal_of: Callable[[Address], str | None] = lambda sender: None,
        journal: TransactionJournal | None = None,
        local_rule: LocalRule | None = None,
    ) -> None:
        """Create the pool. `refusal_of` returns the reason why an account may not send transactions, or None. The owner
        of the rules calls `forget_accounts` when they change. `local_rule` decides about each local transaction.
        """
        self.config = config
        self.events: Topic[PoolEvent] = Topic()
        self.departures = DroppedTransactions(clock)
        self.events.listen(self.departures.on_pool_event)
        self.version = 0
        self.hold_answer: Callable[[PooledTransaction, bool], asyncio.Future[None] | None] | None = None
        """Called with the newest admitted transaction of each caller, and whether the caller accepts an early answer.
        Returns None if the caller gets its answer at once. Otherwise returns a future: the caller gets its answer when
        the future is done. The instant sealer delays answers until the block is in the chain.
        """
        self._floor = floor
        self._lanes = lanes
        self._clock = clock
        self._queue = Queue(config.max_size, config.max_bytes)
        self._admitter = Admitter(config, floor, head, refusal_of, self._queue, local_rule)
        self.duplicates = self._admitter.duplicates
        self._local = None if journal is None else LocalTransactions(journal, self._queue)
        self._blobs = BlobStore()
        self._mined: list[PooledTransaction] = []
        """Transactions of the newest blocks, freed step by step."""
        self._intake = PoolIntake(lanes.decoding, self._admit_all)
        self.bring = self._intake.bring
        """Queues an `Arrival` of raw transactions. Unlike `submit`, creates no future."""

    # --- admission ------------------------------------------------------------------------------

    async def add(self, raws: Sequence[bytes], origin: Origin) -> list[Admission]:
        """Decode, check and queue raw transactions. Returns one result per transaction, in order."""
        return await self.submit(raws, origin)

    def submit(
        self, raws: Sequence[bytes], origin: Origin, senders: bytes | None = None
    ) -> BatchSubmission[list[Admission]]:
        """Decode, check and queue raw transactions. The returned awaitable has one result per transaction.

        `senders` may contain the expected sender of each transaction, as concatenated addresses. Checking a correct
        address is faster than recovering it. A wrong address does not change the result.
        """
        return self._intake.submit(raws, origin is Origin.LOCAL, senders)

    def send(self, raw: bytes) -> SingleSubmission:
        """Submit a local transaction. The future resolves to its hash or raises `PoolRejected`."""
        sending = SingleSubmission((raw,), is_local=True)
        self.bring(sending)
        return sending

    def send_decoded(self, transaction: Transaction, takes_early_answer: bool = False) -> SingleSubmission:
        """Submit a decoded local transaction. The future resolves to its hash or raises `PoolRejected`.

        With `takes_early_answer`, an idle pool admits the transaction at once, and the future may resolve before an
        instant sealer makes the block.
        """
        sending = SingleSubmission((transaction.raw,), True, takes_early_answer)
        if takes_early_answer and not len(self._queue):
            self._intake.admit_now(sending, transaction)
        else:
            self._intake.bring_decoded(sending, transaction)
        return sending

    def _admit_all(self, arrivals: list[Arrival[list[Admission]]], transactions: Decoded) -> None:
        decoded, now, admit = iter(transactions), self._clock.now(), self._admitter.admit
        if self._admitter.local_rule is not None:
            self._admitter.local_rule.prepare(_of_clients(arrivals, transactions))
        batch = self._admitter.begin_batch()
        entered = batch.entered
        outcomes: list[tuple[Arrival[list[Admission]], list[Admission], PooledTransaction | None]] = []
        try:
            for arrival in arrivals:
                before, is_local = len(entered), arrival.is_local
                answer: list[Admission] = []
                for raw in arrival.raws:
                    one = next(decoded)
                    if isinstance(one, str):
                        answer.append(Rejected(undecodable(one)))
                    elif raw[0] == BLOB_TYPE:
                        answer.append(self._admit_with_blobs(one, raw, is_local, now, batch))
                    else:
                        answer.append(admit(one, is_local, now, batch))
                outcomes.append((arrival, answer, entered[-1] if len(entered) > before else None))
            if self._local is not None:
                self._local.append(entered, now)
        except Exception:
            # the journal was not written: remove the batch, because its transactions would be lost at a restart
            self._admitter.undo(batch)
            self._forget_blobs()
            self.version += 1
            raise
        self._announce(batch)
        if self._mined:
            del self._mined[-_RELEASED_PER_STEP:]
        hold_answer = self.hold_answer
        for arrival, answer, newest in outcomes:
            hold = None
            if newest is not None and hold_answer is not None:
                hold = hold_answer(newest, arrival.takes_early_answer)
            if hold is not None:
                hold.add_done_callback(partial(_answer_held, arrival, answer))
                continue
            try:
                arrival.answer(answer)
            except Exception:  # the other callers must still get their results
                log.exception("caller failed to process its result")

    def _admit_with_blobs(
        self, transaction: Transaction, raw: bytes, is_local: bool, now: float, batch: AdmissionBatch
    ) -> Admission:
        refusal = blobs_are_there(transaction, raw)
        if refusal is not None:
            return Rejected(refusal, transaction.hash)
        admission = self._admitter.admit(transaction, is_local, now, batch)
        if isinstance(admission, Admitted):
            self._blobs.put(admission.hash, raw)
        return admission

    def _announce(self, batch: AdmissionBatch) -> None:
        """Evict transactions above the limits, then publish the changes of a batch."""
        if not batch.entered:
            return
        self.version += 1
        evicted = self._queue.evict()
        if batch.replaced:
            self.events.publish(Dropped(tuple(batch.replaced), DropReason.REPLACED))
        self.events.publish(Added(tuple(batch.entered)))
        if evicted:
            self._forget_blobs()
            self.events.publish(Dropped(tuple(evicted), DropReason.EVICTED))

    def forget_accounts(self) -> None:
        """Clear the cached nonces, balances and refusals of senders. Called when the account rules have changed."""
        self._admitter.accounts.clear()

    # --- queries --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._queue)

    def best(self, base_fee: int) -> Iterator[PooledTransaction]:
        """Yield transactions for the next block: highest effective tip first, then earliest arrival. Those of one
        sender are in the order of their nonces.

        Omits transactions that pay less than the current minimum gas price.
        """
        return self._queue.best(base_fee, self._floor.min_gas_price)

    def run_from(self, item: PooledTransaction, base_fee: int) -> Iterator[PooledTransaction]:
        """Yield a transaction and the next ones of its sender, until one pays less than a minimum price."""
        return self._queue.run_from(item, base_fee, self._floor.min_gas_price)

    @property
    def has_executable(self) -> bool:
        """Whether any sender has a transaction with the next nonce of its account, at any price."""
        return any(queue.end > queue.start for queue in self._queue.senders.values())

    def next_nonce(self, sender: Address) -> int | None:
        """Return the first nonce after the sender's executable transactions, or None if the sender has no such
        transactions.
        """
        queue = self._queue.senders.get(sender)
        return queue.end if queue is not None and queue.end > queue.start else None

    def get(self, hash: Hash32) -> PooledTransaction | None:
        return self._queue.by_hash.get(hash)

    def has_none(self, hashes: Iterable[Hash32]) -> bool:
        """Whether none of these transactions is in the pool."""
        return self._queue.by_hash.keys().isdisjoint(hashes)

    def those_left(self, items: Sequence[PooledTransaction]) -> list[PooledTransaction]:
        """Return those of some transactions that are still in the pool."""
        if self.has_none([item.hash for item in items]):
            return []
        return [item for item in items if item.hash in self._queue.by_hash]

    def network_form(self, item: PooledTransaction) -> bytes | None:
        """Return a transaction as peers send it, with its blobs. None if the blob store has evicted the blobs."""
        return self._blobs.get(item.hash) if item.transaction.type == BLOB_TYPE else item.transaction.raw

    def by_sender_nonce(self, sender: Address, nonce: int) -> PooledTransaction | None:
        return self._queue.find(sender, nonce)

    @property
    def is_by_arrival(self) -> bool:
        """Whether transactions in blocks are ordered by arrival instead of price."""
        return self._queue.by_arrival

    def order_by_arrival(self, is_by_arrival: bool = True) -> None:
        """Order transactions in blocks by arrival, or by price."""
        self._queue.by_arrival = is_by_arrival

    def transactions(self) -> list[PooledTransaction]:
        """Return every transaction, pending and queued, in the order of arrival."""
        return list(self._queue.by_hash.values())

    def statistics(self) -> PoolStatistics:
        """Return the size limit of the pool, and the numbers of local and remote transactions."""
        local = self._queue.local_count
        return PoolStatistics(self.config.max_size, local, len(self._queue) - local)

    def counts(self) -> tuple[int, int]:
        """Return the number of pending and the number of queued transactions."""
        pending = self._queue.executable()
        return pending, len(self._queue) - pending

    def content(self, sender: Address | None = None) -> PoolContent:
        """List transactions by sender and nonce, of one sender or of all senders."""
        return content_of(self._queue, sender)

    # --- chain events ---------------------------------------------------------------------------

    def on_chain_event(self, event: ChainEvent, head: PoolHead) -> None:
        """Follow a new head: remove mined transactions, and admit transactions of abandoned blocks again."""
        self._admitter.move_to(head)
        added = event.added if isinstance(event, Reorged) else event.blocks
        senders: set[Address] = set()
        for block in added:
            if block.body.transaction_count:
                hashes, its_senders = block.body.hashes_and_senders()
                self._mined.extend(self._queue.take_mined(hashes))
                senders.update(its_senders)
        if isinstance(event, Reorged):
            for block in event.removed:
                senders.update(block.body.hashes_and_senders()[1])
        self.version += 1
        self._move_senders(senders)
        if isinstance(event, Reorged):
            self._return(event)
        self._forget_blobs()
        if self._local is not None:
            self._local.compact()

    def _move_senders(self, senders: Iterable[Address]) -> None:
        """Drop transactions whose nonces are already used."""
        stale: list[PooledTransaction] = []
        for sender in senders:
            stale.extend(self._queue.move(sender, self._admitter.account(sender)[0]))
        if stale:
            self.version += 1
            self.events.publish(Dropped(tuple(stale), DropReason.STALE))

    def _return(self, event: Reorged) -> None:
        """Admit transactions of abandoned blocks again, oldest first, unless the new branch has them. They count as
        remote.
        """
        mined = {hash for block in event.added for hash in block.body.hashes_and_senders()[0]}
        batch, now = self._admitter.begin_batch(), self._clock.now()
        for block in reversed(event.removed):
            for transaction in block.body.transactions:
                if transaction.hash not in mined:
                    self._admitter.admit(transaction, False, now, batch)
        self._announce(batch)

    def readmit(self, transactions: Sequence[Transaction]) -> None:
        """Replace the content of the pool, when a development node restores a snapshot."""
        self.drop(tuple(self._queue.by_hash), DropReason.STALE)
        batch, now = self._admitter.begin_batch(), self._clock.now()
        for transaction in transactions:
            self._admitter.admit(transaction, True, now, batch)
        self._announce(batch)

    def drop(self, hashes: Sequence[Hash32], reason: DropReason, details: Mapping[Hash32, str] | None = None) -> None:
        """Remove transactions for one reason. `details` may have an explanation for each hash."""
        dropped = tuple(item for item in map(self._queue.by_hash.get, hashes) if item is not None)
        for item in dropped:
            self._queue.remove(item)
        if dropped:
            self.version += 1
            self._forget_blobs()
            self.events.publish(Dropped(dropped, reason, details))

    def _forget_blobs(self) -> None:
        if len(self._blobs):
            self._blobs.keep(self._queue.by_hash.__contains__)

    # --- maintenance ----------------------------------------------------------------------------

    def sweep(self) -> None:
        """Remove transactions older than the retention time, and transactions with used nonces."""
        oldest = self._oldest()
        expired = [item.hash for item in self._queue.matching(lambda item: item.added_at < oldest)]
        self.drop(expired, DropReason.EXPIRED)
        self._move_senders(list(self._queue.senders))

    def _oldest(self) -> float:
        """Return the arrival time before which a transaction has expired."""
        return self._clock.now() - self.config.retention_hours * 3600

    def restore(self) -> int:
        """Admit the local transactions of the last run again. Returns how many are valid."""
        if self._local is None:
            return 0
        batch = self._admitter.begin_batch()
        entries = self._local.restore(
            lambda transaction, added_at: self._admitter.admit(transaction, True, added_at, batch), self._oldest()
        )
        self.version += 1
        self._queue.evict()
        if batch.replaced:
            self.events.publish(Dropped(tuple(batch.replaced), DropReason.REPLACED))
        self._local.settle(entries)
        return len(self._queue)

    async def run(self, ready: Callable[[], None]) -> None:
        """Sweep, free mined transactions and write the journal to disk at intervals."""
        ready()
        due = _SWEEP_INTERVAL_S
        try:
            while True:
                await asyncio.sleep(_SYNC_INTERVAL_S)
                while self._mined:
                    del self._mined[-_RELEASED_PER_STEP:]
                    await asyncio.sleep(0)
                if self._local is not None:
                    # compact the journal even without new blocks: each replaced transaction leaves an unused line
                    self._local.compact()
                    sync = self._local.journal.sync_job()
                    if sync is not None:
                        await self._lanes.files.run(sync)
                due -= _SYNC_INTERVAL_S
                if due <= 0:
                    due = _SWEEP_INTERVAL_S
                    self.sweep()
        finally:
            if self._local is not None:
                self._local.journal.close()


def _answer_held(arrival: Arrival[list[Admission]], answer: list[Admission], held: asyncio.Future[None]) -> None:
    arrival.answer(answer)


def _of_clients(arrivals: Sequence[Arrival[list[Admission]]], transactions: Decoded) -> list[Transaction]:
    """Return the decoded transactions of local arrivals. `transactions` contains those of all arrivals."""
    decoded = iter(transactions)
    return [
        one
        for arrival in arrivals
        for _, one in zip(arrival.raws, decoded, strict=False)
        if arrival.is_local and not isinstance(one, str)
    ]
