"""Node rules: one predicate for nine actions between two nodes (networking.md 5.4).

Every action has a source and a destination, and both must be permitted. A list applies to all nine actions. Contracts
treat some actions differently while the node syncs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from ophion.permissions.decision_counts import DecisionCounts
from ophion.primitives.enode import Enode
from ophion.runtime.topic import Topic

if TYPE_CHECKING:
    from ophion.permissions.allow_list import AllowList
    from ophion.permissions.node_contract import NodeContract
    from ophion.runtime.host_name_resolver import HostNames
    from ophion.runtime.reverse_dns import ReverseNames


class Action(Enum):
    """Action of one node towards another."""

    KEEP_IN_TABLE = "be kept in the table of discovery"
    SEND_PING = "be sent a ping"
    ACCEPT_PING = "send a ping"
    SEND_FIND_NODE = "be asked for neighbours"
    ANSWER_FIND_NODE = "ask for neighbours"
    DIAL = "be connected to"
    ACCEPT = "connect"
    KEEP_OUTBOUND = "stay connected"
    KEEP_INBOUND = "stay connected after it has connected"


_INWARD = frozenset({Action.ACCEPT_PING, Action.ANSWER_FIND_NODE, Action.ACCEPT, Action.KEEP_INBOUND})
"""Actions that the remote node starts."""

_NEIGHBOURS = frozenset({Action.SEND_FIND_NODE, Action.ANSWER_FIND_NODE})

Listener: TypeAlias = tuple[bytes, str, int]


class NodeRules:
    """Node rules in force. Used on the event loop."""

    def __init__(
        self, own_id: bytes, listed: AllowList[Enode] | None = None, bootnodes: frozenset[bytes] = frozenset()
    ) -> None:
        """Create the rules. A node counts as a bootnode if its node id is in `bootnodes`, at any address."""
        self.local = Enode(own_id, "127.0.0.1", 0, 0)
        """This node's own enode; the listener sets it."""
        self.changed: Topic[None] = Topic()
        """Published when the rules may have withdrawn a permission."""
        self.contract: NodeContract | None = None
        """The node contract, called only for nodes that the list permits; None if there is no contract."""
        self.is_in_sync: Callable[[], bool] = lambda: True
        self.peer_ids: Callable[[], Iterable[bytes]] = tuple
        """Returns the node ids of the connected peers."""
        self.list_verdicts = DecisionCounts()
        """Counts of the decisions that the allow-list of nodes has made."""
        self.sync_verdicts = DecisionCounts()
        """Counts of decisions by the rule that only bootnodes are permitted while the node syncs. Counted only if the
        node has bootnodes.
        """
        self._host_names: HostNames | None = None
        self._bootnodes = bootnodes
        self._listed = listed
        self._listeners: frozenset[Listener] = frozenset()
        self._listed_ids: frozenset[bytes] = frozenset()
        if listed is not None:
            self._learn(listed)
            listed.changed.listen(lambda change: self._on_change(listed))

    def use_host_names(self, host_names: HostNames, reverse: ReverseNames | None = None) -> None:
        """Resolve the host names of listed nodes before nodes are compared.

        If a host name gets a new address, the rules use the new address immediately. For contracts that list host
        names, `reverse` finds the host name of an address.
        """
        self._host_names = host_names
        if self.contract is not None and reverse is not None:
            self.contract.names_at = lambda address: (*host_names.names_at(address), *reverse.names_at(address))
        if self._listed is not None:
            host_names.add(self._listed)
        host_names.changed.listen(self._on_address)

    def resolve(self, enode: Enode) -> Enode:
        """Return a node at the current address of its host name."""
        return enode if self._host_names is None else self._host_names.resolve(enode)

    def listeners(self, listed: Enode) -> tuple[Listener, ...]:
        """Return the listeners that a list entry permits: one with its host name, one with the current address of this
        name.
        """
        resolved = self.resolve(listed)
        return (listener(listed),) if resolved is listed else (listener(listed), listener(resolved))

    @property
    def has_bootnodes(self) -> bool:
        return bool(self._bootnodes)

    @property
    def is_on(self) -> bool:
        """Whether any node rules are configured."""
        return self._listed is not None or self.contract is not None

    def names(self, node_id: bytes) -> bool:
        """Whether the list or the bootnodes contain this node id, at any address. Does not call a contract."""
        return node_id in self._listed_ids or node_id in self._bootnodes

    def refusal_of(self, remote: Enode, action: Action) -> str | None:
        """Return why the rules refuse an action between this node and another; None if the action is permitted."""
        return self.refusal(*self._ends(self.resolve(remote), action), action)

    def contract_refusal_of(self, remote: Enode, action: Action) -> str | None:
        """Return why the contract refuses an action between this node and another; None if the action is permitted."""
        return None if self.contract is None else self._by_contract(self.contract, *self._ends(remote, action), action)

    def _ends(self, remote: Enode, action: Action) -> tuple[Enode, Enode]:
        """Return the source node and the destination node of an action."""
        return (remote, self.local) if action in _INWARD else (self.local, remote)

    def refusal(self, source: Enode, destination: Enode, action: Action) -> str | None:
        """Return why the rules refuse an action between any two nodes; None if the action is permitted."""
        refusal = self._by_list(source, destination)
        if refusal is not None or self.contract is None:
            return refusal
        return self._by_contract(self.contract, source, destination, action)

    def _by_contract(self, contract: NodeContract, source: Enode, destination: Enode, action: Action) -> str | None:
        """Apply the contract at the head. While this node syncs, only bootnodes are permitted, if it has any."""
        for end in (source, destination):
            if not end.ip:
                return f"the address of {end.host} is not known yet"
        is_with_bootnode = self.local.node_id in (source.node_id, destination.node_id) and (
            source.node_id in self._bootnodes or destination.node_id in self._bootnodes
        )
        if self._bootnodes:
            if not self.is_in_sync():
                return self.sync_verdicts.record(_before_in_sync(is_with_bootnode, action))
            self.sync_verdicts.record(None)
        if is_with_bootnode and self._has_only_bootnodes():
            return None
        return contract.refusal(source, destination)

    def is_exempt(self, remote: Enode) -> bool:
        """Whether a bootnode is exempt from the contract, because this node is not in sync or has no other peers."""
        return remote.node_id in self._bootnodes and (not self.is_in_sync() or self._has_only_bootnodes())

    def _has_only_bootnodes(self) -> bool:
        return self._bootnodes.issuperset(self.peer_ids())

    def _by_list(self, source: Enode, destination: Enode) -> str | None:
        listed = self._listed
        if listed is None:
            return None
        for end in (source, destination):
            # the rules always permit this node itself, whatever its address is
            if end.node_id != self.local.node_id and listener(end) not in self._listeners:
                return self.list_verdicts.record(
                    f"node {end.url} is not in the list of permitted nodes ({listed.file.path})"
                )
        return self.list_verdicts.record(None)

    def _on_change(self, listed: AllowList[Enode]) -> None:
        self._learn(listed)
        self.changed.publish(None)

    def _on_address(self, name: str) -> None:
        if self._listed is not None and any(enode.host == name for enode in self._listed):
            self._on_change(self._listed)

    def _learn(self, listed: AllowList[Enode]) -> None:
        self._listeners = frozenset(one for enode in listed for one in self.listeners(enode))
        self._listed_ids = frozenset(enode.node_id for enode in listed)


def _before_in_sync(is_with_bootnode: bool, action: Action) -> str | None:
    if action in _NEIGHBOURS:
        return "neighbours are not asked for before this node has caught up with the chain"
    return None if is_with_bootnode else "only bootnodes are permitted before this node has caught up"


def listener(enode: Enode) -> Listener:
    """Return node id, address and TCP port. Until a host name is resolved, the name takes the place of the address."""
    return enode.node_id, enode.ip or enode.host, enode.tcp_port
