"""`Admitter`: checks transactions of a batch and puts them into the queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct, field

from ophion.chain.gas_price import FeeFloor
from ophion.errors import PoolRejected
from ophion.native.transactions import Transaction
from ophion.pool.admission import Account, AdmissionContext, AdmissionRequest, PoolHead, judge, not_authorized
from ophion.pool.events import Admission, Admitted, Origin, Rejected
from ophion.pool.fast_path import admit_plain
from ophion.pool.options import PoolConfig
from ophion.pool.queue import PooledTransaction, Queue
from ophion.pool.replacement import may_replace
from ophion.primitives.types import Address


class AdmissionBatch(Struct, eq=False):
    """Transactions that are admitted and announced together."""

    before: int
    """Sequence number of the newest pooled transaction before the batch."""
    entered: list[PooledTransaction] = field(default_factory=list)
    replaced: list[PooledTransaction] = field(default_factory=list)


class LocalRule(Protocol):
    """Decides about transactions of clients, after the other checks."""

    def prepare(self, transactions: Sequence[Transaction], /) -> None:
        """Prepare the decisions about transactions that are admitted together."""

    def refusal(self, transaction: Transaction, /) -> str | None:
        """Explain why a client may not send the transaction. Returns None if the client may send it."""


class Admitter:
    """Admission at the current head. Reads the account of each sender once per head."""

    def __init__(
        self,
        config: PoolConfig,
        floor: FeeFloor,
        head: PoolHead,
        refusal_of: Callable[[Address], str | None],
        queue: Queue,
        local_rule: LocalRule | None = None,
    ) -> None:
        self.queue = queue
        self.context = AdmissionContext.at(head, floor, config.fee_cap, config.needs_chain_id)
        self.accounts: dict[Address, Account] = {}
        self.sequence = 0
        self.duplicates = {Origin.LOCAL: 0, Origin.REMOTE: 0}
        """Number of transactions received again while they were in the pool, for metrics."""
        self.refusal_of = refusal_of
        self.local_rule = local_rule
        self._config = config
        self._floor = floor

    def move_to(self, head: PoolHead) -> None:
        """Switch to the rules and accounts of another head."""
        self.context = AdmissionContext.at(head, self._floor, self._config.fee_cap, self._config.needs_chain_id)
        self.accounts.clear()

    def begin_batch(self) -> AdmissionBatch:
        """Start a batch with the current minimum gas prices of the node."""
        if self.context.least != (self._floor.min_gas_price, self._floor.min_priority_fee):
            self.context = self.context.with_current_prices()
        return AdmissionBatch(self.sequence)

    def admit(self, transaction: Transaction, is_local: bool, added_at: float, batch: AdmissionBatch) -> Admission:
        """Check a transaction and put it into the queue. The caller announces the batch afterwards."""
        admitted = admit_plain(self, transaction, is_local, added_at, batch.entered)
        if admitted is not None:
            return admitted
        request = AdmissionRequest.of(transaction, self.context.head.fork, is_local)
        if request.hash in self.queue.by_hash:
            self.duplicates[Origin.LOCAL if is_local else Origin.REMOTE] += 1
            return Rejected(PoolRejected("known", "Known transaction"), request.hash)
        refusal = judge(request, self.context, self.account)
        if refusal is None and is_local and self.local_rule is not None:
            refusal = not_authorized(self.local_rule.refusal(transaction))
        if refusal is not None:
            return Rejected(refusal, request.hash)
        item = self._pooled(request, added_at)
        existing = self.queue.find(item.sender, item.nonce)
        if existing is not None and not may_replace(existing, item, self._config, self._floor):
            return Rejected(PoolRejected("underpriced", "Replacement transaction underpriced"), item.hash)
        self.queue.put(item, self.account(item.sender)[0])
        if existing is not None:
            if existing in batch.entered:
                batch.entered.remove(existing)
            batch.replaced.append(existing)
        batch.entered.append(item)
        return Admitted(item.hash)

    def undo(self, batch: AdmissionBatch) -> None:
        """Remove a batch from the queue and restore the transactions that the batch replaced."""
        for item in batch.entered:
            self.queue.remove(item)
        for existing in batch.replaced:
            if existing.sequence <= batch.before:
                self.queue.put(existing, self.account(existing.sender)[0])

    def account(self, sender: Address) -> Account:
        """Return nonce, balance and refusal (if any) of an account at the head."""
        account = self.accounts.get(sender)
        if account is None:
            state = self.context.head.state
            found = None if state is None else state.account(sender)
            nonce, balance = (0, 0) if found is None else found[:2]
            account = (nonce, balance, self.refusal_of(sender))
            if len(self.accounts) >= self._config.max_size:
                self.accounts.clear()  # bound the memory of this cache, because a peer can sign with any number of keys
            self.accounts[sender] = account
        return account

    def _pooled(self, request: AdmissionRequest, added_at: float) -> PooledTransaction:
        self.sequence += 1
        return PooledTransaction(
            request.transaction,
            request.hash,
            request.sender,
            request.nonce,
            request.gas_limit,
            request.max_fee,
            request.max_tip,
            request.size,
            request.is_local,
            added_at,
            self.sequence,
        )
