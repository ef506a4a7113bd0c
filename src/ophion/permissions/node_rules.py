"""Which nodes may do what with each other: one predicate for nine actions (networking.md 5.4).

Every action has a source and a destination, and both must be permitted. What a list says holds for all nine; rules on
the chain may treat them differently while a node catches up.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from ophion.permissions.allow_list import AllowList
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

_Listener: TypeAlias = tuple[bytes, str, int]


class NodeRules:
    """Rules about nodes that are in force. Belongs to the event loop."""

    def __init__(self, own_id: bytes, listed: AllowList[Enode] | None = None) -> None:
        self.local = Enode(own_id, "127.0.0.1", 0, 0)
        """This node as others know it; whoever listens says so."""
        self.changed: Topic[None] = Topic()
        """What was permitted may be so no longer."""
        self._listed = listed
        self._listeners: frozenset[_Listener] = frozenset()
        if listed is not None:
            self._learn(listed)
            listed.changed.listen(lambda change: self._on_change(listed))

    @property
    def is_on(self) -> bool:
        """Whether there are any rules."""
        return self._listed is not None

    def refusal_of(self, remote: Enode, action: Action) -> str | None:
        """Why this node and another may not do something together; None: they may."""
        if action in _INWARD:
            return self.refusal(remote, self.local, action)
        return self.refusal(self.local, remote, action)

    def refusal(self, source: Enode, destination: Enode, action: Action) -> str | None:
        """As `refusal_of`, for any two nodes."""
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
