"""What a change of rules would do, before anybody makes it.

The change is thought of as made: in the lists of this node where it has them, else in the contracts of the network,
which are taken for lists too (what is named is permitted or not, everything else stays as the contract answers now).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ophion.errors import RulesError
from ophion.native.executor import State
from ophion.permissions.node_rules import Action, Listener, listener
from ophion.permissions.permissions import Permissions
from ophion.primitives.block import HashedHeader
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address


class Change(Struct, frozen=True):
    """Additions and removals."""

    add_accounts: Sequence[Address] = ()
    remove_accounts: Sequence[Address] = ()
    add_nodes: Sequence[Enode] = ()
    remove_nodes: Sequence[Enode] = ()


class Connection(Struct, frozen=True):
    """A peer of now."""

    enode: Enode
    address: Address
    is_inbound: bool


class DryRun(Struct, frozen=True):
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
) -> DryRun:
    """Think a change through for the connections and senders of now; nothing is changed."""
    problem = _problem(permissions, change)
    if problem is not None:
        return DryRun(problem, (), ())
    ends = _Ends(permissions, change)
    closed = tuple(one for one in connections if ends(one))
    removed = frozenset(change.remove_accounts)
    leaving = (sender for sender in senders if sender in removed)
    shut_out = tuple(sender for sender in leaving if _may_send(permissions, sender, head, state))
    return DryRun(None, closed, shut_out)


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


class _Ends:
    """Whether a connection would end; what holds for all of them is worked out once."""

    def __init__(self, permissions: Permissions, change: Change) -> None:
        self._rules = permissions.node_rules
        self._added, self._removed = (
            frozenset(map(listener, some)) for some in (change.add_nodes, change.remove_nodes)
        )
        self._listed: frozenset[Listener] | None = None
        if permissions.listed_nodes is not None:
            gone = frozenset(change.remove_nodes)
            kept = (listener(enode) for enode in permissions.listed_nodes if enode not in gone)
            self._listed = frozenset(kept) | self._added

    def __call__(self, connection: Connection) -> bool:
        rules, remote = self._rules, connection.enode
        action = Action.KEEP_INBOUND if connection.is_inbound else Action.KEEP_OUTBOUND
        by_contract = rules.contract_refusal_of(remote, action)
        if self._listed is not None:
            is_listed = remote.node_id == rules.local.node_id or listener(remote) in self._listed
            # a contract beside the list is not touched by the change
            return not is_listed or by_contract is not None
        if rules.contract is None:
            return False
        ends = {listener(remote), listener(rules.local)}
        if not ends.isdisjoint(self._removed):
            return not rules.is_exempt(remote)
        return by_contract is not None and ends.isdisjoint(self._added)


def _may_send(permissions: Permissions, sender: Address, head: HashedHeader, state: State) -> bool:
    """By the rules of now that the change is about."""
    if permissions.listed_accounts is not None:
        return permissions.account_refusal(sender) is None
    contract = permissions.account_contract
    return contract is not None and contract.refusal(head, state, sender) is None
