"""Dry run of a change of rules: computes the effects without applying the change.

A change applies to the allow-lists of this node if the node has such lists, otherwise to the rules contracts of the
network. With `Change.is_call`, the change always applies to the contracts. The dry run does not execute a contract with
the new rules. For the accounts and nodes in the change, the dry run assumes that the contract answers as the change
says. For all other accounts and nodes, the dry run calls the current contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ophion.errors import RulesError
from ophion.native.executor import State
from ophion.permissions.node_rules import Action, Listener, listener
from ophion.permissions.permissions import Permissions
from ophion.primitives.enode import Enode
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address


class Change(Struct, frozen=True):
    """A change of rules to examine: additions and removals of accounts and nodes."""

    add_accounts: Sequence[Address] = ()
    remove_accounts: Sequence[Address] = ()
    add_nodes: Sequence[Enode] = ()
    remove_nodes: Sequence[Enode] = ()
    is_call: bool = False
    """Whether transactions to the rules contracts make this change, so that the allow-lists stay unchanged."""


class PeerConnection(Struct, frozen=True):
    """A connected peer that a change may disconnect."""

    enode: Enode
    address: Address
    is_inbound: bool


class DryRun(Struct, frozen=True):
    """Effects of a change of rules."""

    problem: str | None
    """Reason why the whole change would be refused; None if it would be accepted."""
    closed: tuple[PeerConnection, ...]
    """Connections that the change would end."""
    shut_out: tuple[Address, ...]
    """Senders that may send now but not after the change."""


def dry_run(
    permissions: Permissions,
    change: Change,
    connections: Iterable[PeerConnection],
    senders: Iterable[Address],
    head: HashedHeader,
    state: State,
) -> DryRun:
    """Compute the effects of a change on these connections and senders."""
    problem = _problem(permissions, change)
    if problem is not None:
        return DryRun(problem, (), ())
    is_closed = _ConnectionCheck(permissions, change)
    closed = tuple(one for one in connections if is_closed(one))
    removed = frozenset(change.remove_accounts)
    leaving = (sender for sender in senders if sender in removed)
    shut_out = tuple(sender for sender in leaving if _may_send(permissions, change, sender, head, state))
    return DryRun(None, closed, shut_out)


def reachable(members: Sequence[Address], own: Address, connected: Iterable[Address]) -> int:
    """Count the validators that this node reaches, including itself."""
    present = {own, *connected}
    return sum(member in present for member in members)


def _problem(permissions: Permissions, change: Change) -> str | None:
    """Return the error with which the `perm` methods would refuse the change of a list, or None."""
    if change.is_call:
        return None
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


class _ConnectionCheck:
    """Decides whether the change would close a connection. Computes common values once for all connections."""

    def __init__(self, permissions: Permissions, change: Change) -> None:
        self._rules = permissions.node_rules
        self._added, self._removed = (
            frozenset(map(listener, some)) for some in (change.add_nodes, change.remove_nodes)
        )
        self._listed: frozenset[Listener] | None = None
        if permissions.listed_nodes is not None and not change.is_call:
            removed = frozenset(change.remove_nodes)
            remaining = [enode for enode in permissions.listed_nodes if enode not in removed]
            permitted = (one for enode in (*remaining, *change.add_nodes) for one in self._rules.listeners(enode))
            self._listed = frozenset(permitted)

    def __call__(self, connection: PeerConnection) -> bool:
        rules, remote = self._rules, connection.enode
        action = Action.KEEP_INBOUND if connection.is_inbound else Action.KEEP_OUTBOUND
        by_contract = rules.contract_refusal_of(remote, action)
        if self._listed is not None:
            is_listed = remote.node_id == rules.local.node_id or listener(remote) in self._listed
            # the new allow-list decides only together with the permission contract: both must permit the connection
            return not is_listed or by_contract is not None
        if rules.contract is None:
            return False
        ends = {listener(remote), listener(rules.local)}
        if not ends.isdisjoint(self._removed):
            return not rules.is_exempt(remote)
        return by_contract is not None and ends.isdisjoint(self._added)


def _may_send(permissions: Permissions, change: Change, sender: Address, head: HashedHeader, state: State) -> bool:
    """Whether a sender may send before the change, according to the list or contract that the change affects."""
    if permissions.listed_accounts is not None and not change.is_call:
        return permissions.account_refusal(sender) is None
    contract = permissions.account_contract
    return contract is not None and contract.refusal(head, state, sender) is None
