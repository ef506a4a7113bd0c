"""Nodes by the rules of a contract, as it answers at the head (operations.md 11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ophion.chain.chain import Chain
from ophion.errors import ConfigError
from ophion.native.executor import State
from ophion.permissions.contract_abi import connection_question, node_question, read_connection, read_yes_or_no
from ophion.permissions.contract_calls import ContractCalls
from ophion.permissions.verdicts import Verdicts
from ophion.primitives.block import HashedHeader
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address

_INVALID: Final = "Error validating onchain node permissioning smart contract configuration"


class NodeContract:
    """Asks whether two nodes may be connected. Belongs to the event loop."""

    def __init__(self, chain: Chain, contract: Address, version: int = 1) -> None:
        self.version = version
        self.verdicts = Verdicts()
        self._chain = chain
        self._calls = ContractCalls(chain, contract)
        self._ask: Callable[[HashedHeader, State, Enode, Enode], str | None]
        self._ask = self._connection if version == 1 else self._both_ends

    @property
    def address(self) -> Address:
        return self._calls.contract

    @property
    def asked(self) -> int:
        """How many questions the contract was really asked."""
        return self._calls.asked

    def validate(self, local: Enode) -> None:
        """`ConfigError` when the head has no such contract, or one that does not answer."""
        head = self._chain.head
        state = self._chain.store.state(head.header.state_root)
        if not self._calls.is_there(state):
            raise ConfigError(f"{_INVALID}: there is no contract at 0x{self._calls.contract.hex()}.")
        refusal = self._ask(head, state, local, local)
        if refusal is not None and not refusal.endswith(" says no"):
            raise ConfigError(f"{_INVALID}: {refusal}.")

    def refusal(self, source: Enode, destination: Enode, block: HashedHeader | None = None) -> str | None:
        """Why these two may not be connected after a block, the head unless another is given; None: they may."""
        block = block or self._chain.head
        return self.verdicts.note(self._ask(block, self._chain.state(block.header), source, destination))

    def _connection(self, block: HashedHeader, state: State, source: Enode, destination: Enode) -> str | None:
        refusal = self._calls.refusal(block, state, connection_question(source, destination), read_connection)
        return refusal and f"nodes {source.url} and {destination.url} may not be connected: {refusal}"

    def _both_ends(self, block: HashedHeader, state: State, source: Enode, destination: Enode) -> str | None:
        for end in (source, destination):
            refusal = self._calls.refusal(block, state, node_question(end), read_yes_or_no)
            if refusal is not None:
                return f"node {end.url} may not connect: {refusal}"
        return None
