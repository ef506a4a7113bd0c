"""Asking a rules contract, each question once per block.

A block of transactions or a crowd of strangers at the door may ask the same thing over and over; the answer can only
change with the block. Answers are kept for the last few blocks that were asked about, in bounded number.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ophion.chain.chain import Chain
from ophion.chain.environment import block_env
from ophion.native.executor import CallOutcome, CallRequest, State, call
from ophion.native.failures import NativeError
from ophion.permissions.contract_abi import MalformedAnswer
from ophion.primitives.block import HashedHeader
from ophion.primitives.revert_reason import revert_reason
from ophion.primitives.types import ZERO_ADDRESS, Address, Hash32

_GAS: Final = 50_000_000
_DEADLINE_S: Final = 1.0
_BLOCKS: Final = 4
_ANSWERS: Final = 8192


class ContractCalls:
    """Questions to one contract. May be used from several threads: the worst that can happen is asking twice."""

    def __init__(self, chain: Chain, contract: Address) -> None:
        self.contract = contract
        self.asked = 0
        """How many questions the contract was really asked."""
        self._chain = chain
        self._answers: OrderedDict[Hash32, dict[bytes, str | None]] = OrderedDict()

    def is_there(self, state: State) -> bool:
        """Whether there is a contract at the address."""
        return bool(state.code(self.contract))

    def refusal(self, header: HashedHeader, state: State, question: bytes, read: Callable[[bytes], bool]) -> str | None:
        """Why the contract says no after this block; None: it says yes. What cannot be understood is a no."""
        answers = self._answers.get(header.hash)
        if answers is None:
            answers = self._answers[header.hash] = {}
            while len(self._answers) > _BLOCKS:
                self._answers.popitem(last=False)
        try:
            return answers[question]
        except KeyError:
            pass
        answer = self._ask(header, state, question, read)
        if len(answers) >= _ANSWERS:
            answers.clear()
        answers[question] = answer
        return answer

    def _ask(self, header: HashedHeader, state: State, question: bytes, read: Callable[[bytes], bool]) -> str | None:
        self.asked += 1
        where = f"contract 0x{self.contract.hex()} at block {header.number}"
        try:
            outcome = _called(self._chain, header, state, self.contract, question)
        except NativeError as error:
            return f"{where} could not be asked: {error}"
        if outcome.kind == "reverted":
            return f"{where} reverted: {revert_reason(outcome.output) or 'without a reason'}"
        if outcome.kind != "returned":
            return f"{where} did not answer: {outcome.reason or outcome.kind}"
        try:
            return None if read(outcome.output) else f"{where} says no"
        except MalformedAnswer as error:
            return f"{where} answered {error}"


def answer_of(chain: Chain, header: HashedHeader, contract: Address, question: bytes) -> bytes:
    """What a contract returns after a block; nothing where it does not, or where the state is not kept any more."""
    try:
        outcome = _called(chain, header, chain.store.state(header.header.state_root), contract, question)
    except NativeError:
        return b""
    return outcome.output if outcome.kind == "returned" else b""


def _called(chain: Chain, header: HashedHeader, state: State, contract: Address, question: bytes) -> CallOutcome:
    env = block_env(chain.spec, chain.rules, header.header, header.header.coinbase)
    request = CallRequest(sender=ZERO_ADDRESS, to=contract, gas=_GAS, input=question)
    return call(state, env, request, (), _DEADLINE_S)
