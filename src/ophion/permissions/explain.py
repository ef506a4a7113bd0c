"""Explains which rules permit or refuse a transaction or a connection, and since which block.

Checks every rule even after a refusal, so that the operator sees all rules that must change. To find the first block
with the current answer, the functions call contracts at many blocks. So callers run the functions in a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ophion.chain.chain import Chain
from ophion.errors import MissingStateError
from ophion.native.exceptions import MissingState
from ophion.native.executor import State
from ophion.permissions.node_rules import listener
from ophion.permissions.permissions import Permissions
from ophion.primitives.enode import Enode
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address

_REACH: Final = 256
"""Maximum number of past blocks that are searched for the first block with the current answer."""


class TransactionFields(Struct, frozen=True):
    """Fields of a transaction that rules read."""

    sender: Address
    to: Address | None = None
    value: int = 0
    gas_price: int = 0
    gas_limit: int = 21_000
    payload: bytes = b""


class RuleAnswer(Struct, frozen=True):
    """The answer of one rule about a transaction or a connection."""

    source: str
    """Where the rule comes from: file or contract."""
    place: str
    """File and line, or the address of the contract."""
    is_allowed: bool
    reason: str
    since: int | None = None
    """First block with this answer, within the search limit. None if the block is unknown."""


def explain_sending(
    permissions: Permissions, chain: Chain, block: HashedHeader, sending: TransactionFields
) -> list[RuleAnswer]:
    """Return the answers of all rules about a transaction after a block. Lists are used in their current state."""
    answers = []
    listed = permissions.listed_accounts
    if listed is not None:
        account = f"account 0x{sending.sender.hex()}"
        is_listed = sending.sender in listed
        reason = f"{account} is {'listed' if is_listed else 'not listed'}"
        answers.append(RuleAnswer("file", listed.file.place_of(sending.sender), is_listed, reason))
    if permissions.account_contract is not None:
        from ophion.permissions.account_contract import AccountContract

        contract = AccountContract(chain, permissions.account_contract.address)

        def ask(header: HashedHeader, state: State) -> str | None:
            return contract.refusal(
                header,
                state,
                sending.sender,
                sending.to,
                sending.value,
                sending.gas_price,
                sending.gas_limit,
                sending.payload,
            )

        answers.append(_by_contract(chain, block, contract.address, ask))
    return answers


def explain_connection(
    permissions: Permissions, chain: Chain, block: HashedHeader, source: Enode, destination: Enode
) -> list[RuleAnswer]:
    """Return the answers of all rules about two nodes after a block. Lists are used in their current state."""
    answers = []
    listed = permissions.listed_nodes
    if listed is not None:
        for end in (source, destination):
            if end.node_id == permissions.node_rules.local.node_id:
                continue
            wanted = listener(permissions.node_rules.resolve(end))
            match = next((one for one in listed if wanted in permissions.node_rules.listeners(one)), None)
            place = str(listed.file.path) if match is None else listed.file.place_of(match)
            reason = f"node {end.url} is {'listed' if match is not None else 'not listed'}"
            answers.append(RuleAnswer("file", place, match is not None, reason))
    current = permissions.node_rules.contract
    if current is not None:
        from ophion.permissions.node_contract import NodeContract

        contract = NodeContract(chain, current.address, current.version)
        answers.append(
            _by_contract(
                chain, block, contract.address, lambda header, state: contract.refusal(source, destination, header)
            )
        )
    return answers


def _by_contract(
    chain: Chain, block: HashedHeader, contract: Address, ask: Callable[[HashedHeader, State], str | None]
) -> RuleAnswer:
    refusal = ask(block, chain.state(block.header))
    reason = refusal or f"contract 0x{contract.hex()} at block {block.number} says yes"
    since = _since(chain, block, lambda header, state: (ask(header, state) is None) is (refusal is None))
    return RuleAnswer("contract", f"0x{contract.hex()}", refusal is None, reason, since)


def _since(chain: Chain, block: HashedHeader, is_same: Callable[[HashedHeader, State], bool]) -> int | None:
    """Return the block since which the answer is the same. None if too far back, or if older states are missing."""
    cursor = block
    for _ in range(_REACH):
        if cursor.number == 0:
            return 0
        parent = chain.header(cursor.parent_hash)
        if parent is None:
            return None
        try:
            state = chain.state(parent.header)
        except (MissingState, MissingStateError):
            return None
        if not is_same(parent, state):
            return cursor.number
        cursor = parent
    return None
