"""Node ids that broke the protocol: left alone for ten minutes, not for ever.

A private network with few nodes must heal by itself, so nothing is barred for good and static peers never are; that is
for whoever asks to decide.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

BAR_S: Final = 600.0
_MOST: Final = 1024


class Bans:
    """Who is barred until when. Bounded: the oldest is forgotten first."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def bar(self, node_id: bytes, now: float) -> None:
        """From now on, for ten minutes."""
        self._until[node_id] = now + BAR_S
        self._until.move_to_end(node_id)
        while len(self._until) > _MOST:
            self._until.popitem(last=False)

    def lift(self, node_id: bytes) -> None:
        """Forget about it: an operator wants this node."""
        self._until.pop(node_id, None)

    def is_barred(self, node_id: bytes, now: float) -> bool:
        """Whether it is not yet forgiven."""
        until = self._until.get(node_id)
        if until is None:
            return False
        if until > now:
            return True
        del self._until[node_id]
        return False
