"""`Lookup`: the iterative lookup of a target, with three concurrent requests.

Each response names the next nodes to ask. The number of requests is bounded, because an attacker could name new nodes
without end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ophion.peers.discovery.routing_table import BUCKET_SIZE, place_of
from ophion.primitives.enode import Enode

AT_A_TIME: Final = 3
MAX_ASKED: Final = 64
"""Limit of nodes asked in one lookup. A lookup among a thousand honest nodes asks half of this number."""


class Lookup:
    """State of one lookup: the nodes known and the nodes asked. The caller sends the requests."""

    def __init__(self, target: bytes, own_id: bytes, known: Iterable[Enode]) -> None:
        self.target = target
        self._place = place_of(target)
        self._own_id = own_id
        self._nearest: dict[bytes, Enode] = {}
        self._asked: set[bytes] = set()
        self._open: set[bytes] = set()
        self._merge(known)

    @property
    def nearest(self) -> list[Enode]:
        """The nodes found so far in the lookup, closest to the target first."""
        return list(self._nearest.values())

    @property
    def is_over(self) -> bool:
        """Whether all closest nodes were asked and no request is open."""
        is_done = len(self._asked) >= MAX_ASKED or all(node_id in self._asked for node_id in self._nearest)
        return not self._open and is_done

    def next_nodes(self) -> list[Enode]:
        """Return the nodes to ask now. The caller calls `answered` or `failed` for each."""
        chosen = []
        for node_id, enode in self._nearest.items():
            if len(self._open) >= AT_A_TIME or len(self._asked) >= MAX_ASKED:
                break
            if node_id not in self._asked:
                self._asked.add(node_id)
                self._open.add(node_id)
                chosen.append(enode)
        return chosen

    def answered(self, node_id: bytes, found: Iterable[Enode]) -> None:
        """Record the response of a node, which names the nodes in `found`."""
        self._open.discard(node_id)
        self._merge(found)

    def failed(self, node_id: bytes) -> None:
        """Remove a node that did not respond."""
        self._open.discard(node_id)
        self._nearest.pop(node_id, None)

    def _merge(self, enodes: Iterable[Enode]) -> None:
        merged = dict(self._nearest)
        for enode in enodes:
            if enode.node_id != self._own_id and enode.node_id not in self._asked:
                merged.setdefault(enode.node_id, enode)
        nearest = sorted(merged, key=lambda node_id: place_of(node_id) ^ self._place)
        self._nearest = {node_id: merged[node_id] for node_id in nearest[:BUCKET_SIZE]}
