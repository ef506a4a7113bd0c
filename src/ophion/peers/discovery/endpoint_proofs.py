"""`EndpointProofs`: nodes that answered our Ping from their address. Proofs last 12 hours (networking.md 2.2)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeVar

from ophion.primitives.enode import Enode

T = TypeVar("T")

LASTS_S: Final = 12 * 3600.0
_MOST: Final = 4096


class EndpointProofs:
    """Endpoint proofs by node id and IP. Above the limit, evicts the oldest proof of the IP with the most proofs, so
    that one address cannot evict the proofs of other nodes.
    """

    __slots__ = ("_proven", "_seen")

    def __init__(self) -> None:
        self._proven: _ProofTable[Enode] = _ProofTable()
        self._seen: _ProofTable[None] = _ProofTable()

    def prove(self, enode: Enode, now: float) -> bool:
        """Record that a node answered our Ping; returns whether the proof is new."""
        is_new = self._proven.fresh(enode.node_id, enode.ip, now) is None
        self._proven.put(enode.node_id, enode.ip, now, enode)
        return is_new

    def note_our_proof(self, node_id: bytes, ip: str, now: float) -> None:
        """Record that a node has received a Pong from this node. The node now has a proof of this node's endpoint."""
        self._seen.put(node_id, ip, now, None)

    def proven(self, node_id: bytes, ip: str, now: float) -> Enode | None:
        """Return the node that has proven this endpoint, or None without a valid proof."""
        found = self._proven.fresh(node_id, ip, now)
        return None if found is None else found[1]

    def has_our_proof(self, node_id: bytes, ip: str, now: float) -> bool:
        """Whether the node has a proof of our endpoint. A node answers our requests only if it has this proof."""
        return self._seen.fresh(node_id, ip, now) is not None


class _ProofTable(Generic[T]):
    """Entries with their time by IP and node id, at most `_MOST`."""

    __slots__ = ("_by_ip", "_count")

    def __init__(self) -> None:
        self._by_ip: dict[str, OrderedDict[bytes, tuple[float, T]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, node_id: bytes, ip: str, now: float, what: T) -> None:
        nodes = self._by_ip.setdefault(ip, OrderedDict())
        self._count += node_id not in nodes
        nodes[node_id] = (now, what)
        nodes.move_to_end(node_id)
        while self._count > _MOST:
            most = max(self._by_ip, key=lambda one: len(self._by_ip[one]))
            self._by_ip[most].popitem(last=False)
            self._count -= 1
            if not self._by_ip[most]:
                del self._by_ip[most]

    def fresh(self, node_id: bytes, ip: str, now: float) -> tuple[float, T] | None:
        """Return an entry that has not expired, or None."""
        nodes = self._by_ip.get(ip)
        found = None if nodes is None else nodes.get(node_id)
        return found if found is not None and now - found[0] < LASTS_S else None
