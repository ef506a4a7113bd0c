"""Account rules of a contract, which decide whether a block is valid (operations.md 11)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from ophion.chain.chain import Chain
from ophion.errors import InvalidBlock
from ophion.native.executor import State
from ophion.native.transactions import Body, Transaction
from ophion.permissions.contract_abi import read_yes_or_no, sending_question, transaction_question
from ophion.permissions.contract_calls import ContractCalls, Refusal
from ophion.permissions.decision_counts import DecisionCounts
from ophion.permissions.set_code_authorities import authorities
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address

log = logging.getLogger(__name__)


class AccountContract:
    """Calls the account contract on the state of a block's parent. Used in the threads of import and block building."""

    def __init__(self, chain: Chain, contract: Address) -> None:
        self.verdicts = DecisionCounts()
        self._calls = ContractCalls(chain, contract)
        self._chain = chain
        self._has_noted_absence = False

    @property
    def address(self) -> Address:
        return self._calls.contract

    @property
    def asked(self) -> int:
        """Number of calls to the contract so far."""
        return self._calls.asked

    def refusals(
        self, parent: HashedHeader, state: State, transactions: Iterable[Transaction]
    ) -> Iterable[tuple[int, str]]:
        """Yield position and reason of each transaction that a block on `parent` may not contain."""
        return ((position, refusal.text) for position, refusal in self.refused(parent, state, transactions))

    def refused(
        self,
        parent: HashedHeader,
        state: State,
        transactions: Iterable[Transaction],
        limit_s: float | None = None,
    ) -> Iterator[tuple[int, Refusal]]:
        """Same as `refusals`, but yields a `Refusal` instead of its text. `limit_s` shortens the time limit of each
        call.
        """
        if not self._is_there(parent, state):
            return
        asked: list[tuple[int, Address, str]] = []
        questions = []
        for position, transaction in enumerate(transactions):
            sender = transaction.sender
            questions.append(transaction_question(transaction, sender))
            asked.append((position, sender, "may not send this transaction"))
            for authority in authorities(transaction):
                questions.append(transaction_question(transaction, authority))
                asked.append((position, authority, "may not authorize this transaction"))
        refusals = self._calls.refusals(parent, state, questions, read_yes_or_no, limit_s)
        for (position, account, why), refusal in zip(asked, refusals, strict=True):
            self.verdicts.record(refusal)
            if refusal is not None:
                yield position, refusal.about(f"account 0x{account.hex()} {why}")

    def refusal(
        self,
        block: HashedHeader,
        state: State,
        sender: Address,
        to: Address | None = None,
        value: int = 0,
        gas_price: int = 0,
        gas_limit: int = 21_000,
        payload: bytes = b"",
    ) -> str | None:
        """Explain why an account may not send a transaction after a block. Returns None if the account may send it."""
        if not self._is_there(block, state):
            return None
        question = sending_question(sender, to, value, gas_price, gas_limit, payload)
        refusal = self.verdicts.record(self._calls.refusal(block, state, question, read_yes_or_no))
        return None if refusal is None else refusal.text

    def check(self, parent: HashedHeader, state: State, body: Body) -> None:
        """Raise `InvalidBlock` when a block on `parent` contains a forbidden transaction.

        The error is transient when the contract exceeded its time limit on this machine.
        """
        if not body.transaction_count:
            return
        for position, refusal in self.refused(parent, state, body.transactions):
            what = f"transaction {position}: {refusal.text}"
            raise InvalidBlock("transaction not permitted", what, transient=refusal.is_late)

    def _is_there(self, block: HashedHeader, state: State) -> bool:
        if self._calls.is_deployed(state):
            self._has_noted_absence = False
            return True
        if not self._has_noted_absence:
            self._has_noted_absence = True
            log.warning(
                "account rules contract is missing: every account is permitted contract=0x%s block=%d",
                self.address.hex(),
                block.number,
            )
        return False
