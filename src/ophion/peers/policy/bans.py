"""`Bans`: ids of nodes that broke the protocol, banned for ten minutes.

No ban is permanent, because a private network with few nodes must recover without an operator. Callers exempt static
peers.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

BAR_S: Final = 600.0
_MAX_ENTRIES: Final = 1024


class Bans:
    """Banned node ids with the end time of each ban. Above the limit, evicts the oldest ban."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def bar(self, node_id: bytes, now: float) -> None:
        """Ban a node for ten minutes."""
        self._until[node_id] = now + BAR_S
        self._until.move_to_end(node_id)
        while len(self._until) > _MAX_ENTRIES:
            self._until.popitem(last=False)

    def lift(self, node_id: bytes) -> None:
        """Remove the ban of a node. Called when the operator adds the node as a static peer."""
        self._until.pop(node_id, None)

    def is_barred(self, node_id: bytes, now: float) -> bool:
        """Whether a node is banned now."""
        until = self._until.get(node_id)
        if until is None:
            return False
        if until > now:
            return True
        del self._until[node_id]
        return False
