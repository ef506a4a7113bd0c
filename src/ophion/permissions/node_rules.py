"""Which nodes may do what with each other: one predicate for nine actions (networking.md 5.4).

Every action has a source and a destination, and both must be permitted. What a list says holds for all nine; rules on
the chain may treat them differently while a node catches up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import TypeAlias

from ophion.permissions.allow_list import AllowList
from ophion.permissions.node_contract import NodeContract
from ophion.primitives.enode import Enode
from ophion.runtime.topic import Topic


class Action(Enum):
    """What one node wants of another."""

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
"""What the other node begins."""

_NEIGHBOURS = frozenset({Action.SEND_FIND_NODE, Action.ANSWER_FIND_NODE})

_Listener: TypeAlias = tuple[bytes, str, int]


class NodeRules:
    """Rules about nodes that are in force. Belongs to the event loop."""

    def __init__(
        self, own_id: bytes, listed: AllowList[Enode] | None = None, bootnodes: frozenset[bytes] = frozenset()
    ) -> None:
        """`bootnodes` are known by their ids."""
        self.local = Enode(own_id, "127.0.0.1", 0, 0)
        """This node as others know it; whoever listens says so."""
        self.changed: Topic[None] = Topic()
        """What was permitted may be so no longer."""
        self.contract: NodeContract | None = None
        """Asked when the list permits; None: there is none."""
        self.is_in_sync: Callable[[], bool] = lambda: True
        self.peer_ids: Callable[[], Iterable[bytes]] = tuple
        """Who is connected."""
        self._bootnodes = bootnodes
        self._listed = listed
        self._listeners: frozenset[_Listener] = frozenset()
        if listed is not None:
            self._learn(listed)
            listed.changed.listen(lambda change: self._on_change(listed))

    @property
    def is_on(self) -> bool:
        """Whether there are any rules."""
        return self._listed is not None or self.contract is not None

    def refusal_of(self, remote: Enode, action: Action) -> str | None:
        """Why this node and another may not do something together; None: they may."""
        if action in _INWARD:
            return self.refusal(remote, self.local, action)
        return self.refusal(self.local, remote, action)

    def refusal(self, source: Enode, destination: Enode, action: Action) -> str | None:
        """As `refusal_of`, for any two nodes."""
        refusal = self._by_list(source, destination)
        if refusal is not None or self.contract is None:
            return refusal
        return self._by_contract(self.contract, source, destination, action)

    def _by_contract(self, contract: NodeContract, source: Enode, destination: Enode, action: Action) -> str | None:
        """What the head says, unless this node is behind it: then bootnodes show the way."""
        ids = {source.node_id, destination.node_id}
        is_with_bootnode = self.local.node_id in ids and not self._bootnodes.isdisjoint(ids)
        if self._bootnodes and not self.is_in_sync():
            if action in _NEIGHBOURS:
                return "neighbours are not asked for before this node has caught up with the chain"
            return None if is_with_bootnode else "only bootnodes are permitted before this node has caught up"
        if is_with_bootnode and self._bootnodes.issuperset(self.peer_ids()):
            return None
        return contract.refusal(source, destination)

    def _by_list(self, source: Enode, destination: Enode) -> str | None:
        listed = self._listed
        if listed is None:
            return None
        for end in (source, destination):
            # this node is always permitted, wherever it listens
            if end.node_id != self.local.node_id and _listener(end) not in self._listeners:
                return f"node {end.url} is not in the list of permitted nodes ({listed.file.path})"
        return None

    def _on_change(self, listed: AllowList[Enode]) -> None:
        self._learn(listed)
        self.changed.publish(None)

    def _learn(self, listed: AllowList[Enode]) -> None:
        self._listeners = frozenset(map(_listener, listed))


def _listener(enode: Enode) -> _Listener:
    """What two enodes must have in common to be the same: the discovery port does not count."""
    return enode.node_id, enode.ip, enode.tcp_port
