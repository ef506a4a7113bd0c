from __future__ import annotations

from random import Random

from ophion.peers.discovery.routing_table import BUCKET_SIZE, RoutingTable, place_of
from ophion.primitives.enode import Enode

OWN = bytes(64)


def enode(number: int, ip: str = "127.0.0.1", port: int = 30303) -> Enode:
    return Enode(number.to_bytes(64, "big"), ip, port, port)


def full_bucket(count: int) -> list[Enode]:
    """Return nodes of the farthest bucket, which covers half of all ids."""
    own = place_of(OWN)
    far = (enode(number) for number in range(1, 10_000))
    return [one for one in far if (place_of(one.node_id) ^ own).bit_length() == 256][:count]


def test_nodes_are_found_nearest_first() -> None:
    buckets = RoutingTable(OWN)
    for number in range(1, 60):
        buckets.add(enode(number))
    target = place_of(b"\x09" * 64)
    found = buckets.closest(target)
    distances = [place_of(one.node_id) ^ target for one in found]
    assert len(found) == BUCKET_SIZE
    assert distances == sorted(distances)
    assert distances[0] == min(place_of(one.node_id) ^ target for one in buckets)


def test_ourselves_are_not_in_it() -> None:
    buckets = RoutingTable(OWN)
    buckets.add(Enode(OWN, "127.0.0.1", 1, 1))
    assert len(buckets) == 0
    assert buckets.any(Random(1)) is None


def test_a_full_bucket_keeps_who_is_there_and_lets_others_wait() -> None:
    buckets, nodes = RoutingTable(OWN), full_bucket(40)
    for one in nodes:
        buckets.add(one)
    assert len(buckets) == BUCKET_SIZE
    assert buckets.get(nodes[0].node_id) == nodes[0]
    assert buckets.get(nodes[20].node_id) is None
    buckets.remove(nodes[0].node_id)
    assert buckets.get(nodes[39].node_id) == nodes[39], "who was seen last takes the place"
    assert len(buckets) == BUCKET_SIZE
    for one in nodes:
        buckets.remove(one.node_id)
    assert len(buckets) == 0


def test_who_was_not_seen_for_longest_is_checked_first() -> None:
    buckets, nodes = RoutingTable(OWN), full_bucket(3)
    for one in nodes:
        buckets.add(one)
    assert buckets.any(Random(1)) == nodes[0]
    moved = Enode(nodes[0].node_id, "127.0.0.2", 1, 1)
    buckets.add(moved)
    assert buckets.get(moved.node_id) == moved
    assert buckets.any(Random(1)) == nodes[1]


def test_one_network_of_the_internet_cannot_fill_the_table_our_own_can() -> None:
    public, ours = RoutingTable(OWN), RoutingTable(OWN)
    for number in range(1, 200):
        public.add(enode(number, f"8.8.8.{number}"))
        ours.add(enode(number, f"10.0.0.{number}"))
    assert len(public) <= 10
    assert len(ours) > 50
