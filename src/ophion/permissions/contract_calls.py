"""Calls to a rules contract, cached per block.

Transactions of a block and inbound connections repeat the same questions, and an answer only changes with the block.
The cache holds a bounded number of answers for the last few blocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, structs

from ophion.chain.block_environment import block_env
from ophion.chain.chain import Chain
from ophion.native.exceptions import NativeError
from ophion.native.executor import CallOutcome, CallRequest, State, call_each
from ophion.permissions.contract_abi import MalformedAnswer
from ophion.primitives.header import HashedHeader
from ophion.primitives.revert_reason import revert_reason
from ophion.primitives.types import ZERO_ADDRESS, Address, Hash32

_LONGEST_REASON: Final = 200
_GAS: Final = 50_000_000
_DEADLINE_S: Final = 1.0
_BLOCKS: Final = 4
_ANSWERS: Final = 8192


class Refusal(Struct, frozen=True):
    """The reason why a contract refuses a request."""

    text: str
    is_answer: bool = False
    """Whether the contract itself answered no. False if the call failed or the reply was malformed."""
    is_late: bool = False
    """Whether the call exceeded its time limit, which depends on this machine and not on the rules."""
    is_expensive: bool = False
    """Whether the call used up its gas or its time limit. Such a call takes a tenth of a second or more."""

    def about(self, what: str) -> Refusal:
        """Return a copy whose text names what was refused."""
        return structs.replace(self, text=f"{what}: {self.text}")


class ContractCalls:
    """Calls one rules contract and caches its answers. Thread-safe; two threads may make the same call at the same
    time.
    """

    def __init__(self, chain: Chain, contract: Address) -> None:
        self.contract = contract
        self.asked = 0
        """Number of calls to the contract."""
        self._chain = chain
        self._answers: OrderedDict[Hash32, dict[bytes, Refusal | None]] = OrderedDict()

    def is_deployed(self, state: State) -> bool:
        """Whether the contract's address has code in this state."""
        return bool(state.code(self.contract))

    def refusal(
        self, header: HashedHeader, state: State, question: bytes, read: Callable[[bytes], bool]
    ) -> Refusal | None:
        """Explain why the contract refuses a request after this block. Returns None if the contract permits the
        request.

        A malformed reply counts as a refusal.
        """
        return self.refusals(header, state, (question,), read)[0]

    def refusals(
        self,
        header: HashedHeader,
        state: State,
        questions: Sequence[bytes],
        read: Callable[[bytes], bool],
        limit_s: float | None = None,
    ) -> list[Refusal | None]:
        """Return the reason why the contract refuses each question, or None. Uncached questions share one call.

        `limit_s` shortens the time limit of each question.
        """
        answers = self._answers.get(header.hash)
        if answers is None:
            answers = self._answers[header.hash] = {}
            while len(self._answers) > _BLOCKS:
                self._answers.popitem(last=False)
        new = [question for question in dict.fromkeys(questions) if question not in answers]
        if not new:
            return [answers[question] for question in questions]
        given = dict(zip(new, self._ask(header, state, new, read, limit_s), strict=True))
        known = [given[question] if question in given else answers[question] for question in questions]
        given = {question: refusal for question, refusal in given.items() if refusal is None or not refusal.is_late}
        if len(answers) + len(given) > _ANSWERS:
            # replace the dictionary instead of clearing it, because another thread may still read it
            self._answers[header.hash] = given
        else:
            answers.update(given)
        return known

    def _ask(
        self,
        header: HashedHeader,
        state: State,
        questions: Sequence[bytes],
        read: Callable[[bytes], bool],
        limit_s: float | None,
    ) -> list[Refusal | None]:
        self.asked += len(questions)
        try:
            outcomes = _called(self._chain, header, state, self.contract, questions, limit_s)
        except NativeError as error:
            return [Refusal(f"{self._where(header)} could not be asked: {error}")] * len(questions)
        return [self._meant(header, outcome, read) for outcome in outcomes]

    def _meant(self, header: HashedHeader, outcome: CallOutcome, read: Callable[[bytes], bool]) -> Refusal | None:
        where = self._where(header)
        try:
            if outcome.kind == "returned" and read(outcome.output):
                return None
        except MalformedAnswer as error:
            return Refusal(f"{where} answered {error}")
        if outcome.kind == "reverted":
            return Refusal(f"{where} reverted: {_shown(revert_reason(outcome.output)) or 'without a reason'}")
        if outcome.kind != "returned":
            is_late = outcome.kind == "timeout"
            is_expensive = is_late or outcome.reason == "out of gas"
            return Refusal(
                f"{where} did not answer: {outcome.reason or outcome.kind}", is_late=is_late, is_expensive=is_expensive
            )
        return Refusal(f"{where} says no", is_answer=True)

    def _where(self, header: HashedHeader) -> str:
        return f"contract 0x{self.contract.hex()} at block {header.number}"


def _shown(reason: str | None) -> str:
    """Return the revert text of a contract as one short printable line."""
    return "".join(filter(str.isprintable, (reason or "")[:_LONGEST_REASON]))


def answer_of(chain: Chain, header: HashedHeader, contract: Address, question: bytes) -> bytes:
    """Call a contract in the state after a block and return its output. The output is empty if the call fails or the
    state is pruned.
    """
    try:
        state = chain.store.state(header.header.state_root)
        (outcome,) = _called(chain, header, state, contract, (question,))
    except NativeError:
        return b""
    return outcome.output if outcome.kind == "returned" else b""


def _called(
    chain: Chain,
    header: HashedHeader,
    state: State,
    contract: Address,
    questions: Sequence[bytes],
    limit_s: float | None = None,
) -> list[CallOutcome]:
    env = block_env(chain.spec, chain.rules, header.header, header.header.coinbase)
    request = CallRequest(sender=ZERO_ADDRESS, to=contract, gas=_GAS)
    return call_each(state, env, request, questions, _DEADLINE_S if limit_s is None else limit_s)
