"""The account contract as a rule of the pool for transactions of clients (operations.md 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ophion.chain.chain import Chain
from ophion.native.transactions import Transaction
from ophion.permissions.account_contract import AccountContract
from ophion.primitives.types import Hash32

_MAX_TOGETHER: Final = 32
_QUICK_CALL_S: Final = 0.02
"""Time limit of a call in a batch, so that a whole batch of slow calls blocks the event loop for less than a second."""


class ContractAdmission:
    """Calls the account contract on the state of the head. Runs on the event loop.

    If a call uses up its gas or its time, this rule permits the transaction, and does not call the contract again
    before the next block. Block building decides about such transactions.
    """

    def __init__(self, contract: AccountContract, chain: Chain) -> None:
        self._contract = contract
        self._chain = chain
        self._too_expensive_at: Hash32 | None = None
        self._answers: dict[Hash32, str | None] = {}
        self._answered_at: Hash32 | None = None

    def prepare(self, transactions: Sequence[Transaction]) -> None:
        """Call the contract for transactions that arrive together. One call into the Rust extension for all costs a
        fraction of single calls.

        The first transaction is checked alone, because its call shows whether the contract is too expensive at this
        head. If a later call is slow, `refusal` checks its batch and all further transactions one by one.
        """
        head = self._chain.head
        self._answers, self._answered_at = {}, head.hash
        if len(transactions) < 2 or self._too_expensive_at == head.hash:
            return
        first = self.refusal(transactions[0])
        if self._too_expensive_at == head.hash:
            return
        self._answers[transactions[0].hash] = first
        state = self._chain.state(head.header)
        for start in range(1, len(transactions), _MAX_TOGETHER):
            chunk = transactions[start : start + _MAX_TOGETHER]
            refused: dict[int, str] = {}
            for position, refusal in self._contract.refused(head, state, chunk, _QUICK_CALL_S):
                if refusal.is_expensive:
                    return
                refused.setdefault(position, refusal.text)
            for position, transaction in enumerate(chunk):
                self._answers[transaction.hash] = refused.get(position)

    def refusal(self, transaction: Transaction) -> str | None:
        """Explain why the next block may not contain a transaction. None if the contract permits it or is too slow."""
        head = self._chain.head
        if self._answered_at == head.hash and transaction.hash in self._answers:
            return self._answers[transaction.hash]
        if self._too_expensive_at == head.hash:
            return None
        for _, refusal in self._contract.refused(head, self._chain.state(head.header), (transaction,)):
            if not refusal.is_expensive:
                return refusal.text
            self._too_expensive_at = head.hash
        return None
