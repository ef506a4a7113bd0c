"""Node rules of a contract at the head (operations.md 11).

Unknown peers trigger these calls, which run on the event loop. So a contract that uses up its gas or time is not called
again before the next block. Until then all requests are refused with the same reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from ophion.chain.chain import Chain
from ophion.errors import ConfigError
from ophion.native.executor import State
from ophion.permissions.contract_abi import connection_question, node_question, read_connection, read_yes_or_no
from ophion.permissions.contract_calls import ContractCalls, Refusal
from ophion.permissions.decision_counts import DecisionCounts
from ophion.primitives.enode import Enode
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address, Hash32

log = logging.getLogger(__name__)

_MAX_NAMES: Final = 8
"""Maximum number of host names per node that the contract is asked about."""
_INVALID: Final = "Error validating onchain node permissioning smart contract configuration"


class NodeContract:
    """Asks the contract whether two nodes may connect. Runs on the event loop."""

    def __init__(self, chain: Chain, contract: Address, version: int = 1) -> None:
        self.version = version
        self.verdicts = DecisionCounts()
        self._chain = chain
        self._calls = ContractCalls(chain, contract)
        self._exhausted: tuple[Hash32, Refusal] | None = None
        """Last block at which a call used up its gas or time, and the refusal of all later calls at this block."""
        self.names_at: Callable[[str], Iterable[str]] = lambda address: ()
        """Returns the host names of an address, which contracts of interface version 2 may list."""
        self._ask: Callable[[HashedHeader, State, Enode, Enode], Refusal | None]
        self._ask = self._connection if version == 1 else self._both_ends

    @property
    def address(self) -> Address:
        return self._calls.contract

    @property
    def asked(self) -> int:
        """Number of calls to the contract."""
        return self._calls.asked

    def validate(self, local: Enode) -> None:
        """Raise `ConfigError` if the contract is missing at the head or does not answer."""
        head = self._chain.head
        state = self._chain.store.state(head.header.state_root)
        if not self._calls.is_deployed(state):
            raise ConfigError(f"{_INVALID}: there is no contract at 0x{self._calls.contract.hex()}.")
        refusal = self._ask(head, state, local, local)
        if refusal is not None and not refusal.is_answer:
            raise ConfigError(f"{_INVALID}: {refusal.text}.")

    def refusal(self, source: Enode, destination: Enode, block: HashedHeader | None = None) -> str | None:
        """Explain why two nodes may not connect after a block (default: the head). Returns None if the nodes may
        connect.
        """
        block = block or self._chain.head
        refusal = self.verdicts.record(self._ask(block, self._chain.state(block.header), source, destination))
        return None if refusal is None else refusal.text

    def _connection(self, block: HashedHeader, state: State, source: Enode, destination: Enode) -> Refusal | None:
        refusal = self._answer(block, state, connection_question(source, destination), read_connection)
        if refusal is None:
            return None
        return refusal.about(f"nodes {source.url} and {destination.url} may not be connected")

    def _both_ends(self, block: HashedHeader, state: State, source: Enode, destination: Enode) -> Refusal | None:
        for end in (source, destination):
            refusal = self._answer(block, state, node_question(end), read_yes_or_no)
            if refusal is not None and not (refusal.is_answer and self._is_named(block, state, end)):
                return refusal.about(f"node {end.url} may not connect")
        return None

    def _is_named(self, block: HashedHeader, state: State, end: Enode) -> bool:
        """Whether the contract permits a node under a host name of its address, as in Besu."""
        names = dict.fromkeys((*((end.host,) if end.host else ()), *self.names_at(end.ip)))
        return any(
            self._answer(block, state, node_question(end, name), read_yes_or_no) is None
            for name in islice(names, _MAX_NAMES)
        )

    def _answer(
        self, block: HashedHeader, state: State, question: bytes, read: Callable[[bytes], bool]
    ) -> Refusal | None:
        if self._exhausted is not None and self._exhausted[0] == block.hash:
            return self._exhausted[1]
        refusal = self._calls.refusal(block, state, question, read)
        if refusal is None or not refusal.is_expensive:
            self._exhausted = None
            return refusal
        if self._exhausted is None and block.hash == self._chain.head.hash:
            log.warning(
                "node rules contract does not answer: all connections are refused until the next block reason=%s",
                refusal.text,
            )
        self._exhausted = (block.hash, refusal)
        return refusal
