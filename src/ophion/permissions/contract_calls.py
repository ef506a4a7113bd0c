"""Asking a rules contract, each question once per block.

A block of transactions or a crowd of strangers at the door may ask the same thing over and over; the answer can only
change with the block. Answers are kept for the last few blocks that were asked about, in bounded number.
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
from ophion.primitives.block import HashedHeader
from ophion.primitives.revert_reason import revert_reason
from ophion.primitives.types import ZERO_ADDRESS, Address, Hash32

_LONGEST_REASON: Final = 200
_GAS: Final = 50_000_000
_DEADLINE_S: Final = 1.0
_BLOCKS: Final = 4
_ANSWERS: Final = 8192


class Refusal(Struct, frozen=True):
    """Why something is not permitted by a contract."""

    text: str
    is_answer: bool = False
    """The contract was asked and says no."""
    is_late: bool = False
    """No answer for good, and more about this machine than about the rules: it took too long."""
    is_dear: bool = False
    """It took as long as a question can take, a tenth of a second and more."""

    def about(self, what: str) -> Refusal:
        """The same, of something that its words do not name."""
        return structs.replace(self, text=f"{what}: {self.text}")


class ContractCalls:
    """Questions to one contract. May be used from several threads: the worst that can happen is asking twice."""

    def __init__(self, chain: Chain, contract: Address) -> None:
        self.contract = contract
        self.asked = 0
        """How many questions the contract was really asked."""
        self._chain = chain
        self._answers: OrderedDict[Hash32, dict[bytes, Refusal | None]] = OrderedDict()

    def is_there(self, state: State) -> bool:
        """Whether there is a contract at the address."""
        return bool(state.code(self.contract))

    def refusal(
        self, header: HashedHeader, state: State, question: bytes, read: Callable[[bytes], bool]
    ) -> Refusal | None:
        """Why the contract says no after this block; None: it says yes. What cannot be understood is a no."""
        return self.refusals(header, state, (question,), read)[0]

    def refusals(
        self, header: HashedHeader, state: State, questions: Sequence[bytes], read: Callable[[bytes], bool]
    ) -> list[Refusal | None]:
        """As `refusal`, for many questions: those that are new are asked together."""
        answers = self._answers.get(header.hash)
        if answers is None:
            answers = self._answers[header.hash] = {}
            while len(self._answers) > _BLOCKS:
                self._answers.popitem(last=False)
        new = [question for question in dict.fromkeys(questions) if question not in answers]
        if not new:
            return [answers[question] for question in questions]
        given = dict(zip(new, self._ask(header, state, new, read), strict=True))
        known = [given[question] if question in given else answers[question] for question in questions]
        given = {question: refusal for question, refusal in given.items() if refusal is None or not refusal.is_late}
        if len(answers) + len(given) > _ANSWERS:
            self._answers[header.hash] = given  # another thread may still look into the one before
        else:
            answers.update(given)
        return known

    def _ask(
        self, header: HashedHeader, state: State, questions: Sequence[bytes], read: Callable[[bytes], bool]
    ) -> list[Refusal | None]:
        self.asked += len(questions)
        try:
            outcomes = _called(self._chain, header, state, self.contract, questions)
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
            is_dear = is_late or outcome.reason == "out of gas"
            return Refusal(
                f"{where} did not answer: {outcome.reason or outcome.kind}", is_late=is_late, is_dear=is_dear
            )
        return Refusal(f"{where} says no", is_answer=True)

    def _where(self, header: HashedHeader) -> str:
        return f"contract 0x{self.contract.hex()} at block {header.number}"


def _shown(reason: str | None) -> str:
    """Words of a contract as they may stand in a log, and in memory once for each question: one line, not endless."""
    return "".join(filter(str.isprintable, (reason or "")[:_LONGEST_REASON]))


def answer_of(chain: Chain, header: HashedHeader, contract: Address, question: bytes) -> bytes:
    """What a contract returns after a block; nothing where it does not, or where the state is not kept any more."""
    try:
        state = chain.store.state(header.header.state_root)
        (outcome,) = _called(chain, header, state, contract, (question,))
    except NativeError:
        return b""
    return outcome.output if outcome.kind == "returned" else b""


def _called(
    chain: Chain, header: HashedHeader, state: State, contract: Address, questions: Sequence[bytes]
) -> list[CallOutcome]:
    env = block_env(chain.spec, chain.rules, header.header, header.header.coinbase)
    request = CallRequest(sender=ZERO_ADDRESS, to=contract, gas=_GAS)
    return call_each(state, env, request, questions, _DEADLINE_S)
