"""`TxPool`: the one door for transactions, and everything others may ask about those that wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct, field

from ophion.chain.events import ChainEvent, Reorged
from ophion.chain.gas_price import FeeFloor
from ophion.errors import PoolRejected, StorageError
from ophion.native.transactions import Transaction, decode_transactions, journal_lines
from ophion.pool.admission import BLOB_TYPE, Account, Applicant, Gate, PoolHead, blobs_are_there, judge, undecodable
from ophion.pool.blob_store import Blobs
from ophion.pool.dropped_transactions import DroppedTransactions
from ophion.pool.events import (
    Added,
    Admission,
    Admitted,
    Dropped,
    DropReason,
    Origin,
    PoolContent,
    PoolEvent,
    PoolStatistics,
    Rejected,
)
from ophion.pool.intake import Arrival, Awaited, Intake, Sending
from ophion.pool.journal import Entry, Journal
from ophion.pool.options import PoolConfig
from ophion.pool.queue import PooledTransaction, Queue
from ophion.primitives.types import Address, Hash32
from ophion.runtime.clock import Clock
from ophion.runtime.decoding import Decoded
from ophion.runtime.lanes import Lanes
from ophion.runtime.topic import Topic

log = logging.getLogger(__name__)

_SWEEP_INTERVAL_S = 60.0
_SYNC_INTERVAL_S = 1.0
_DEFAULT_PRICE_BUMP = 10
_LET_GO = 64
"""Mined transactions that are let go of with each batch that comes in: thousands at once hold the loop for long."""
_MAY_PASS = frozenset({"gas-price-too-low", "base-fee", "gas-limit", "upfront-cost", "not-authorized", "fee-cap"})
"""Reasons of refusals that other options, rules or blocks may take away."""


class _Batch(Struct, eq=False):
    """What comes in together, and is told of together."""

    before: int
    """`sequence` of the last one that was here."""
    entered: list[PooledTransaction] = field(default_factory=list)
    replaced: list[PooledTransaction] = field(default_factory=list)


class TxPool:
    """Pending transactions.

    Belongs to the event loop. `version` changes with every change of content, so that whoever computes something from
    the pool (the pending block) knows when to do it again.
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
        journal: Journal | None = None,
    ) -> None:
        """`refusal_of` says why an account may not send, None for one that may; `forget_accounts` when it changes."""
        self.config = config
        self.events: Topic[PoolEvent] = Topic()
        self.departures = DroppedTransactions(clock)
        self.events.listen(self.departures.on_pool_event)
        self.version = 0
        self.duplicates = {Origin.LOCAL: 0, Origin.REMOTE: 0}
        """Transactions that came although they were here, for metrics."""
        self.hold_answer: Callable[[PooledTransaction], asyncio.Future[None] | None] | None = None
        """Asked for each caller with the last transaction it brought in: the caller is answered when the future is
        done, or at once where there is none. Producers that make blocks at once answer when the block is there."""
        self._floor = floor
        self._lanes = lanes
        self._clock = clock
        self._refusal_of = refusal_of
        self._journal = journal
        self._set_aside: list[Entry] = []
        """Local transactions of the last run that are refused as things are; the journal keeps them."""
        self._queue = Queue(config.max_size, config.max_bytes)
        self._blobs = Blobs()
        self._accounts: dict[Address, Account] = {}
        self._gate = Gate.at(head, floor, config.fee_cap, config.needs_chain_id)
        self._sequence = 0
        self._mined: list[PooledTransaction] = []
        """What has left with the last blocks, and is let go of little by little."""
        self._intake = Intake(lanes.decoding, self._admit_all)
        self.bring = self._intake.bring
        """As `submit`, for who brings thousands and is told without a future."""

    # --- admission ------------------------------------------------------------------------------

    async def add(self, raws: Sequence[bytes], origin: Origin) -> list[Admission]:
        """Decode, check and queue raw transactions; one answer each, in order."""
        return await self.submit(raws, origin)

    def submit(self, raws: Sequence[bytes], origin: Origin) -> Awaited[list[Admission]]:
        """As `add`, for callers that wait by callback instead of a coroutine."""
        return self._intake.submit(raws, origin is Origin.LOCAL)

    def send(self, raw: bytes) -> Sending:
        """The hash of a transaction of this node's own clients; raises what the pool has against it."""
        sending = Sending((raw,), is_local=True)
        self.bring(sending)
        return sending

    def send_decoded(self, transaction: Transaction) -> Sending:
        """The same for a transaction that the caller has decoded."""
        sending = Sending((transaction.raw,), is_local=True)
        self._intake.bring_decoded(sending, transaction)
        return sending

    def _admit_all(self, arrivals: list[Arrival[list[Admission]]], transactions: Decoded) -> None:
        decoded, now, consider = iter(transactions), self._clock.now(), self._consider
        self._look_at_floor()
        batch = _Batch(self._sequence)
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
                        answer.append(self._with_blobs(one, raw, is_local, now, batch))
                    else:
                        answer.append(consider(one, is_local, now, batch))
                outcomes.append((arrival, answer, entered[-1] if len(entered) > before else None))
            self._keep(entered, now)
        except Exception:
            self._undo(batch)  # what cannot be kept must not be acknowledged, and nobody has been told yet
            raise
        self._enter(batch)
        if self._mined:
            del self._mined[-_LET_GO:]
        hold_answer = self.hold_answer
        for arrival, answer, last in outcomes:
            hold = None if last is None or hold_answer is None else hold_answer(last)
            if hold is not None:
                hold.add_done_callback(partial(_answer_held, arrival, answer))
                continue
            try:
                arrival.answer(answer)
            except Exception:  # who answers many must not stop because one cannot be told
                log.exception("somebody could not be told what became of a transaction")

    def _with_blobs(self, transaction: Transaction, raw: bytes, is_local: bool, now: float, batch: _Batch) -> Admission:
        refusal = blobs_are_there(transaction, raw)
        if refusal is not None:
            return Rejected(refusal, transaction.hash)
        admission = self._consider(transaction, is_local, now, batch)
        if isinstance(admission, Admitted):
            self._blobs.put(admission.hash, raw)
        return admission

    def _consider(self, transaction: Transaction, is_local: bool, added_at: float, batch: _Batch) -> Admission:
        admitted = self._usual(transaction, is_local, added_at, batch.entered)
        if admitted is not None:
            return admitted
        applicant = Applicant.of(transaction, self._gate.head.fork, is_local)
        if applicant.hash in self._queue.by_hash:
            return self._known(applicant.hash, is_local)
        refusal = judge(applicant, self._gate, self._account)
        if refusal is not None:
            return Rejected(refusal, applicant.hash)
        item = self._pooled(applicant, added_at)
        rival = self._queue.find(item.sender, item.nonce)
        if rival is not None and not self._may_replace(rival, item):
            return Rejected(PoolRejected("underpriced", "Replacement transaction underpriced"), item.hash)
        self._queue.put(item, self._account(item.sender)[0])
        self.version += 1
        if rival is not None:
            if rival in batch.entered:
                batch.entered.remove(rival)
            batch.replaced.append(rival)
        batch.entered.append(item)
        return Admitted(item.hash)

    def _known(self, hash: Hash32, is_local: bool) -> Rejected:
        self.duplicates[Origin.LOCAL if is_local else Origin.REMOTE] += 1
        return Rejected(PoolRejected("known", "Known transaction"), hash)

    def _usual(
        self, transaction: Transaction, is_local: bool, added_at: float, entered: list[PooledTransaction]
    ) -> Admitted | None:
        """A transaction that no rule refuses and that takes nobody's place, as nearly all are; None for one that takes
        a closer look."""
        bounds = self._gate.bounds
        terms = None if bounds is None else transaction.usual(bounds)
        if terms is None:
            return None
        hash, sender, nonce, gas_limit, max_fee, max_tip, size, cost = terms
        start, balance, refusal = self._accounts.get(sender) or self._account(sender)
        if nonce < start or cost > balance or refusal is not None:
            return None
        self._sequence += 1
        item = PooledTransaction(
            transaction, hash, sender, nonce, gas_limit, max_fee, max_tip, size, is_local, added_at, self._sequence
        )
        if not self._queue.add(item, start):
            return None
        self.version += 1
        entered.append(item)
        return Admitted(hash)

    def _look_at_floor(self) -> None:
        """Before a batch: the least prices may have been changed."""
        floor = self._floor
        if self._gate.least != (floor.min_gas_price, floor.min_priority_fee):
            self._gate = self._gate.moved()

    def _pooled(self, applicant: Applicant, added_at: float) -> PooledTransaction:
        self._sequence += 1
        return PooledTransaction(
            applicant.transaction,
            applicant.hash,
            applicant.sender,
            applicant.nonce,
            applicant.gas_limit,
            applicant.max_fee,
            applicant.max_tip,
            applicant.size,
            applicant.is_local,
            added_at,
            self._sequence,
        )

    def _may_replace(self, old: PooledTransaction, new: PooledTransaction) -> bool:
        """Both prices must rise; by how much is an option, and any raise does where gas may be free."""
        bump = self.config.price_bump
        if bump is None:
            bump = _DEFAULT_PRICE_BUMP if self._floor.min_gas_price else 0
        return _is_raised(old.max_fee, new.max_fee, bump) and _is_raised(old.max_tip, new.max_tip, bump)

    def _keep(self, entered: list[PooledTransaction], now: float) -> None:
        """Those of this node's own clients, on disk before anybody is told of them."""
        if self._journal is None:
            return
        local = [item.transaction for item in entered if item.is_local]
        if local:
            self._journal.append(journal_lines(local, int(now * 1000)))

    def _enter(self, batch: _Batch) -> None:
        """Make a batch known."""
        if not batch.entered:
            return
        evicted = self._queue.evict()
        if batch.replaced:
            self.events.publish(Dropped(tuple(batch.replaced), DropReason.REPLACED))
        self.events.publish(Added(tuple(batch.entered)))
        if evicted:
            self._forget_blobs()
            self.events.publish(Dropped(tuple(evicted), DropReason.EVICTED))

    def _undo(self, batch: _Batch) -> None:
        """As if a batch had not come: what it has replaced is back in its place."""
        for item in batch.entered:
            self._queue.remove(item)
        for rival in batch.replaced:
            if rival.sequence <= batch.before:
                self._queue.put(rival, self._account(rival.sender)[0])
        self._forget_blobs()
        self.version += 1

    def _account(self, sender: Address) -> Account:
        """Nonce and balance at the head and whether it may send, found out once per sender and head."""
        account = self._accounts.get(sender)
        if account is None:
            state = self._gate.head.state
            found = None if state is None else state.account(sender)
            nonce, balance = (0, 0) if found is None else found[:2]
            account = (nonce, balance, self._refusal_of(sender))
            if len(self._accounts) >= self.config.max_size:
                self._accounts.clear()  # strangers sign with as many keys as they like
            self._accounts[sender] = account
        return account

    def forget_accounts(self) -> None:
        """Ask anew about every sender: others may send now than could before."""
        self._accounts.clear()

    # --- what others ask ------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._queue)

    def best(self, base_fee: int) -> Iterator[PooledTransaction]:
        """Transactions for the next block: highest effective tip first, then arrival, each sender in nonce order.

        What pays less than this node's minimum gas price, which may have been raised since, waits.
        """
        return self._queue.best(base_fee, self._floor.min_gas_price)

    def run_from(self, item: PooledTransaction, base_fee: int) -> Iterator[PooledTransaction]:
        """What may be built from a transaction on, of its sender alone, in nonce order; prices as for `best`."""
        return self._queue.run_from(item, base_fee, self._floor.min_gas_price)

    @property
    def has_executable(self) -> bool:
        """Whether any transaction could be built now, its price aside."""
        return any(queue.end > queue.start for queue in self._queue.senders.values())

    def next_nonce(self, sender: Address) -> int | None:
        """First nonce after the sender's unbroken run; None when nothing of the sender may be built."""
        queue = self._queue.senders.get(sender)
        return queue.end if queue is not None and queue.end > queue.start else None

    def get(self, hash: Hash32) -> PooledTransaction | None:
        """The pooled transaction with this hash."""
        return self._queue.by_hash.get(hash)

    def travelling(self, item: PooledTransaction) -> bytes | None:
        """A pooled transaction in the form in which nodes pass it on; None when its blobs are not here any more."""
        return self._blobs.get(item.hash) if item.transaction.type == BLOB_TYPE else item.transaction.raw

    def by_sender_nonce(self, sender: Address, nonce: int) -> PooledTransaction | None:
        """The pooled transaction of this sender with this nonce."""
        return self._queue.find(sender, nonce)

    def order_by_arrival(self) -> None:
        """Build blocks of what came first, whatever it pays."""
        self._queue.by_arrival = True

    def transactions(self) -> list[PooledTransaction]:
        """Every pooled transaction, pending and queued, in the order of arrival."""
        return list(self._queue.by_hash.values())

    def statistics(self) -> PoolStatistics:
        """Size and counts by origin."""
        local = self._queue.local_count
        return PoolStatistics(self.config.max_size, local, len(self._queue) - local)

    def counts(self) -> tuple[int, int]:
        """(pending, queued)"""
        pending = self._queue.executable()
        return pending, len(self._queue) - pending

    def content(self, sender: Address | None = None) -> PoolContent:
        """Pooled transactions by sender and nonce, of one sender or of all."""
        senders = self._queue.senders
        chosen = senders if sender is None else {sender: senders[sender]} if sender in senders else {}
        content = PoolContent({}, {})
        for address, queue in chosen.items():
            nonces = sorted(queue.by_nonce)
            pending = {nonce: queue.by_nonce[nonce] for nonce in nonces if nonce < queue.end}
            queued = {nonce: queue.by_nonce[nonce] for nonce in nonces if nonce >= queue.end}
            if pending:
                content.pending[address] = pending
            if queued:
                content.queued[address] = queued
        return content

    # --- the chain moves ------------------------------------------------------------------------

    def on_chain_event(self, event: ChainEvent, head: PoolHead) -> None:
        """A new head: forget what was mined, take back what was reorganised out."""
        config = self.config
        self._gate = Gate.at(head, self._floor, config.fee_cap, config.needs_chain_id)
        self._accounts.clear()
        added = event.added if isinstance(event, Reorged) else event.blocks
        senders: set[Address] = set()
        for block in added:
            if block.body.transaction_count:
                hashes, its_senders = block.body.parties()
                self._mined.extend(self._queue.take_mined(hashes))
                senders.update(its_senders)
        if isinstance(event, Reorged):
            for block in event.removed:
                senders.update(block.body.parties()[1])
        stale: list[PooledTransaction] = []
        for sender in senders:
            stale.extend(self._queue.move(sender, self._account(sender)[0]))
        self.version += 1
        if stale:
            self.events.publish(Dropped(tuple(stale), DropReason.STALE))
        if isinstance(event, Reorged):
            self._return(event)
        self._forget_blobs()
        self._compact()

    def _return(self, event: Reorged) -> None:
        """Transactions of abandoned blocks that the new branch does not hold come back, oldest first, as remote."""
        mined = {hash for block in event.added for hash in block.body.parties()[0]}
        batch, now = _Batch(self._sequence), self._clock.now()
        for block in reversed(event.removed):
            for transaction in block.body.transactions:
                if transaction.hash not in mined:
                    self._consider(transaction, False, now, batch)
        self._enter(batch)

    def readmit(self, transactions: Sequence[Transaction]) -> None:
        """Take these in place of all that wait; a development node restores a snapshot."""
        self.drop(tuple(self._queue.by_hash), DropReason.STALE)
        batch, now = _Batch(self._sequence), self._clock.now()
        for transaction in transactions:
            self._consider(transaction, True, now, batch)
        self._enter(batch)

    def drop(self, hashes: Sequence[Hash32], reason: DropReason, details: Mapping[Hash32, str] | None = None) -> None:
        """Take out transactions that no block can hold as things stand; `details` says more about some."""
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

    def sweep(self) -> None:
        """Take out what has waited longer than the retention, and what another block made too old."""
        oldest = self._oldest()
        expired = [item.hash for item in self._queue.matching(lambda item: item.added_at < oldest)]
        self.drop(expired, DropReason.EXPIRED)
        stale: list[PooledTransaction] = []
        for sender in list(self._queue.senders):
            stale.extend(self._queue.move(sender, self._account(sender)[0]))
        if stale:
            self.version += 1
            self.events.publish(Dropped(tuple(stale), DropReason.STALE))

    def _oldest(self) -> float:
        """When something must have come to be kept still."""
        return self._clock.now() - self.config.retention_hours * 3600

    # --- over a restart -------------------------------------------------------------------------

    def restore(self) -> int:
        """Take back the local transactions of the last run; how many of them are still good."""
        if self._journal is None:
            return 0
        entries = self._journal.open()
        batch, reason = _Batch(self._sequence), ""
        for entry, decoded in zip(entries, decode_transactions([entry.raw for entry in entries]), strict=True):
            admission = None if isinstance(decoded, str) else self._consider(decoded, True, entry.added_at, batch)
            if not isinstance(admission, Rejected) or entry.added_at < self._oldest():
                continue
            if admission.error.reason in _MAY_PASS:
                self._set_aside.append(entry)
                reason = admission.error.message
        if self._set_aside:
            count = len(self._set_aside)
            log.warning("local transactions are refused now, and kept for the next start count=%d: %s", count, reason)
        self._queue.evict()
        if batch.replaced:
            self.events.publish(Dropped(tuple(batch.replaced), DropReason.REPLACED))
        live = self._live_entries()
        if live != entries:
            self._journal.rewrite(live)
            self._journal.sync()
        return len(self._queue)

    def _compact(self) -> None:
        # a line is about twice its raw bytes; where common transactions would not fill the file, each is looked at
        if self._journal is None or not self._journal.is_wasteful(self._queue.local_count * 300):
            return
        live = self._live_entries()
        if not self._journal.is_wasteful(sum(2 * len(entry.raw) for entry in live)):
            return
        try:
            self._journal.rewrite(live)
        except StorageError as error:
            log.warning("%s; lines of mined transactions stay in it until there is room", error.message)

    def _live_entries(self) -> list[Entry]:
        items = self._queue.matching(lambda item: item.is_local)
        return [*(Entry(item.transaction.raw, item.added_at) for item in items), *self._set_aside]

    async def run(self, ready: Callable[[], None]) -> None:
        """Upkeep while the node runs: retention, and the journal to disk."""
        ready()
        due = _SWEEP_INTERVAL_S
        try:
            while True:
                await asyncio.sleep(_SYNC_INTERVAL_S)
                while self._mined:
                    del self._mined[-_LET_GO:]
                    await asyncio.sleep(0)
                # where no block comes, others may have been replaced or have made room
                self._compact()
                sync = None if self._journal is None else self._journal.sync_job()
                if sync is not None:
                    await self._lanes.files.run(sync)
                due -= _SYNC_INTERVAL_S
                if due <= 0:
                    due = _SWEEP_INTERVAL_S
                    self.sweep()
        finally:
            if self._journal is not None:
                self._journal.close()


def _answer_held(arrival: Arrival[list[Admission]], answer: list[Admission], held: asyncio.Future[None]) -> None:
    arrival.answer(answer)


def _is_raised(old: int, new: int, bump_percent: int) -> bool:
    return new > old and new * 100 >= old * (100 + bump_percent)
