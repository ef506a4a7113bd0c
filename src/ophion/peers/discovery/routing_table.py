"""`RoutingTable`: the Kademlia routing table of live nodes (networking.md 2.3).

The distance of two nodes is the XOR of their hashed ids. A bucket holds 16 nodes whose distance has the same bit
length, least recently seen first. Further nodes go into the bucket's short replacement list.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from random import Random
from typing import Final

from msgspec import Struct, field

from ophion.native.crypto import keccak256
from ophion.peers.policy.addresses import is_public
from ophion.primitives.enode import Enode

BUCKET_SIZE: Final = 16
_MAX_REPLACEMENTS: Final = 10
_MAX_IN_BUCKET: Final = 2
_MAX_PER_SUBNET: Final = 10
"""Limit of nodes from one public subnet, per bucket and in the whole routing table."""
_SUBNET_BITS: Final = {4: 24, 6: 64}


@lru_cache(maxsize=4096)
def place_of(node_id: bytes) -> int:
    """Return the hash of a node id as a number, to compute distances."""
    return int.from_bytes(keccak256(node_id), "big")


class _Bucket(Struct):
    nodes: OrderedDict[bytes, Enode] = field(default_factory=OrderedDict)
    waiting: OrderedDict[bytes, Enode] = field(default_factory=OrderedDict)


class RoutingTable:
    """Routing table, relative to the local node id."""

    def __init__(self, own_id: bytes) -> None:
        self._own_id = own_id
        self._own_place = place_of(own_id)
        self._buckets: dict[int, _Bucket] = {}

    def __iter__(self) -> Iterator[Enode]:
        for bucket in self._buckets.values():
            yield from bucket.nodes.values()

    def __len__(self) -> int:
        return sum(len(bucket.nodes) for bucket in self._buckets.values())

    def get(self, node_id: bytes) -> Enode | None:
        """Return a node of the table, or None. Does not search the replacement lists."""
        return self._bucket(node_id).nodes.get(node_id)

    def add(self, enode: Enode) -> None:
        """Add or refresh a node that has just answered."""
        if enode.node_id == self._own_id:
            return
        bucket = self._bucket(enode.node_id)
        if enode.node_id in bucket.nodes:
            bucket.nodes[enode.node_id] = enode
            bucket.nodes.move_to_end(enode.node_id)
        elif len(bucket.nodes) < BUCKET_SIZE and self._is_rare(enode, bucket):
            bucket.waiting.pop(enode.node_id, None)
            bucket.nodes[enode.node_id] = enode
        else:
            bucket.waiting[enode.node_id] = enode
            bucket.waiting.move_to_end(enode.node_id)
            while len(bucket.waiting) > _MAX_REPLACEMENTS:
                bucket.waiting.popitem(last=False)

    def remove(self, node_id: bytes) -> None:
        """Remove a node that stopped answering. A node of the replacement list takes its slot."""
        bucket = self._bucket(node_id)
        bucket.waiting.pop(node_id, None)
        if bucket.nodes.pop(node_id, None) is None:
            return
        for waiting_id in reversed(tuple(bucket.waiting)):
            if self._is_rare(bucket.waiting[waiting_id], bucket):
                # take the most recently seen node that the subnet limits allow, and put it first, so that it is checked
                # next
                bucket.nodes[waiting_id] = bucket.waiting.pop(waiting_id)
                bucket.nodes.move_to_end(waiting_id, last=False)
                return

    def closest(self, target: int, limit: int = BUCKET_SIZE) -> list[Enode]:
        """Return the nodes closest to a hashed id, closest first."""
        return sorted(self, key=lambda enode: place_of(enode.node_id) ^ target)[:limit]

    def any(self, random: Random) -> Enode | None:
        """Return the least recently seen node of a random bucket; None if the table is empty."""
        filled = [bucket for bucket in self._buckets.values() if bucket.nodes]
        if not filled:
            return None
        return next(iter(random.choice(filled).nodes.values()))

    def _bucket(self, node_id: bytes) -> _Bucket:
        number = (place_of(node_id) ^ self._own_place).bit_length()
        return self._buckets.setdefault(number, _Bucket())

    def _is_rare(self, enode: Enode, bucket: _Bucket) -> bool:
        """Whether table and bucket are below their limits of nodes in one public subnet, so that `enode` may be added.
        Private addresses have no limit.
        """
        if not is_public(enode.ip):
            return True
        subnet = _subnet(enode.ip)
        in_bucket = sum(_subnet(other.ip) == subnet for other in bucket.nodes.values())
        return in_bucket < _MAX_IN_BUCKET and sum(_subnet(other.ip) == subnet for other in self) < _MAX_PER_SUBNET


@lru_cache(maxsize=4096)
def _subnet(ip: str) -> str:
    version = ipaddress.ip_address(ip).version
    return str(ipaddress.ip_network(f"{ip}/{_SUBNET_BITS[version]}", strict=False))
