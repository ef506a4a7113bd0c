"""What a change of rules would do, before anybody makes it.

The change is thought of as made: in the lists of this node where it has them, else in the contracts of the network,
which are taken for lists too (what is named is permitted or not, everything else stays as the contract answers now).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ophion.errors import RulesError
from ophion.native.executor import State
from ophion.permissions.node_rules import Action, listener
from ophion.permissions.permissions import Permissions
from ophion.primitives.block import HashedHeader
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address


@dataclass(frozen=True, slots=True)
class Change:
    """Additions and removals."""

    add_accounts: Sequence[Address] = ()
    remove_accounts: Sequence[Address] = ()
    add_nodes: Sequence[Enode] = ()
    remove_nodes: Sequence[Enode] = ()


@dataclass(frozen=True, slots=True)
class Connection:
    """A peer of now."""

    enode: Enode
    address: Address
    is_inbound: bool


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What would come of a change."""

    problem: str | None
    """Why the change would be refused as a whole; nothing would happen then."""
    closed: tuple[Connection, ...]
    """Connections that would end."""
    shut_out: tuple[Address, ...]
    """Senders, of those asked about, who may send now and could not any more."""


def rehearse(
    permissions: Permissions,
    change: Change,
    connections: Iterable[Connection],
    senders: Iterable[Address],
    head: HashedHeader,
    state: State,
) -> Rehearsal:
    """Think a change through for the connections and senders of now; nothing is changed."""
    problem = _problem(permissions, change)
    if problem is not None:
        return Rehearsal(problem, (), ())
    closed = tuple(one for one in connections if _ends(permissions, change, one))
    shut_out = tuple(sender for sender in senders if _is_shut_out(permissions, change, sender, head, state))
    return Rehearsal(None, closed, shut_out)


def reachable(members: Sequence[Address], own: Address, connected: Iterable[Address]) -> int:
    """How many members of a consensus this node can work with, itself included."""
    present = {own, *connected}
    return sum(member in present for member in members)


def _problem(permissions: Permissions, change: Change) -> str | None:
    """What the methods that make the change would answer; contracts pass over what is so already."""
    accounts, nodes = permissions.listed_accounts, permissions.listed_nodes
    try:
        if accounts is not None:
            accounts.check(change.add_accounts, change.remove_accounts)
        if nodes is not None:
            permissions.check_fixed(change.remove_nodes)
            nodes.check(change.add_nodes, change.remove_nodes)
    except RulesError as error:
        return error.message
    return None


def _ends(permissions: Permissions, change: Change, connection: Connection) -> bool:
    rules, listed = permissions.node_rules, permissions.listed_nodes
    action = Action.KEEP_INBOUND if connection.is_inbound else Action.KEEP_OUTBOUND
    by_contract = rules.contract_refusal_of(connection.enode, action)
    if listed is not None:
        removed = set(change.remove_nodes)
        after = {listener(enode) for enode in listed if enode not in removed} | set(map(listener, change.add_nodes))
        is_listed = connection.enode.node_id == rules.local.node_id or listener(connection.enode) in after
        # a contract beside the list is not touched by the change
        return not is_listed or by_contract is not None
    if rules.contract is None:
        return False
    ends = {listener(connection.enode), listener(rules.local)}
    if not ends.isdisjoint(map(listener, change.remove_nodes)):
        return not rules.is_exempt(connection.enode)
    return by_contract is not None and ends.isdisjoint(map(listener, change.add_nodes))


def _is_shut_out(permissions: Permissions, change: Change, sender: Address, head: HashedHeader, state: State) -> bool:
    if permissions.listed_accounts is not None:
        return permissions.account_refusal(sender) is None and sender in change.remove_accounts
    contract = permissions.account_contract
    if contract is None or sender not in change.remove_accounts:
        return False
    return contract.refusal(head, state, sender) is None
