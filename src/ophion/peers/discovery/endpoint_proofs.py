"""`EndpointProofs`: nodes that answered our Ping from their address. Proofs last 12 hours (networking.md 2.2)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeAlias, TypeVar

from ophion.primitives.enode import Enode

T = TypeVar("T")
_Table: TypeAlias = OrderedDict[tuple[bytes, str], tuple[float, T]]

LASTS_S: Final = 12 * 3600.0
_MOST: Final = 4096


class EndpointProofs:
    """Endpoint proofs by node id and IP. Above the limit, evicts the oldest proof."""

    __slots__ = ("_proven", "_seen")

    def __init__(self) -> None:
        self._proven: _Table[Enode] = OrderedDict()
        self._seen: _Table[None] = OrderedDict()

    def prove(self, enode: Enode, now: float) -> bool:
        """Record that a node answered our Ping; returns whether the proof is new."""
        key = (enode.node_id, enode.ip)
        is_new = _fresh(self._proven, key, now) is None
        _remember(self._proven, key, now, enode)
        return is_new

    def note_our_proof(self, node_id: bytes, ip: str, now: float) -> None:
        """Record that a node has received a Pong from this node. The node now has a proof of this node's endpoint."""
        _remember(self._seen, (node_id, ip), now, None)

    def proven(self, node_id: bytes, ip: str, now: float) -> Enode | None:
        """Return the node that has proven this endpoint, or None without a valid proof."""
        found = _fresh(self._proven, (node_id, ip), now)
        return None if found is None else found[1]

    def has_our_proof(self, node_id: bytes, ip: str, now: float) -> bool:
        """Whether the node has a proof of our endpoint. A node answers our requests only if it has this proof."""
        return _fresh(self._seen, (node_id, ip), now) is not None


def _remember(table: _Table[T], key: tuple[bytes, str], now: float, what: T) -> None:
    table[key] = (now, what)
    table.move_to_end(key)
    while len(table) > _MOST:
        table.popitem(last=False)


def _fresh(table: _Table[T], key: tuple[bytes, str], now: float) -> tuple[float, T] | None:
    found = table.get(key)
    return found if found is not None and now - found[0] < LASTS_S else None
