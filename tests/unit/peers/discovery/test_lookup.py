from __future__ import annotations

from ophion.peers.discovery.lookup import AT_A_TIME, MAX_ASKED, Lookup
from ophion.peers.discovery.routing_table import BUCKET_SIZE, place_of
from ophion.primitives.enode import Enode

OWN, TARGET = bytes(64), b"\x09" * 64


def enode(number: int) -> Enode:
    return Enode(number.to_bytes(64, "big"), "127.0.0.1", 30303, 30303)


def test_three_are_asked_at_a_time_and_the_nearest_first() -> None:
    walk = Lookup(TARGET, OWN, [enode(number) for number in range(1, 30)])
    first = walk.next_nodes()
    assert len(first) == AT_A_TIME
    assert walk.next_nodes() == []
    assert first == walk.nearest[:AT_A_TIME]
    walk.answered(first[0].node_id, [])
    assert len(walk.next_nodes()) == 1
    assert not walk.is_over


def test_it_ends_when_no_closer_node_is_left() -> None:
    world = [enode(number) for number in range(1, 200)]
    walk = Lookup(TARGET, OWN, world[:1])
    asked = 0
    while not walk.is_over:
        for one in walk.next_nodes():
            asked += 1
            start = int.from_bytes(one.node_id, "big")
            walk.answered(one.node_id, [world[(start * 7 + step) % 199] for step in range(16)])
    nearest = sorted(world, key=lambda one: place_of(one.node_id) ^ place_of(TARGET))[:BUCKET_SIZE]
    assert len(walk.nearest) == BUCKET_SIZE
    assert len(set(walk.nearest) & set(nearest)) >= BUCKET_SIZE // 2
    assert asked < 100


def test_who_does_not_answer_is_none_of_the_nearest() -> None:
    walk = Lookup(TARGET, OWN, [enode(1), enode(2)])
    for one in walk.next_nodes():
        walk.failed(one.node_id)
    assert walk.is_over
    assert walk.nearest == []
    walk.answered(enode(3).node_id, [enode(1)])
    assert walk.nearest == [], "nor does it come back by hearsay"


def test_ourselves_are_not_asked() -> None:
    walk = Lookup(TARGET, OWN, [Enode(OWN, "127.0.0.1", 1, 1)])
    assert walk.is_over


def test_a_lookup_is_bounded() -> None:
    walk = Lookup(TARGET, OWN, [enode(1)])
    asked, named = 0, 1
    while not walk.is_over:
        for one in walk.next_nodes():
            asked += 1
            if asked % 2:
                # every second node responds and names the next sixteen nodes
                walk.answered(one.node_id, [enode(named + step) for step in range(1, 17)])
                named += 16
                walk.failed(one.node_id)
            else:
                walk.failed(one.node_id)
        assert asked <= MAX_ASKED
    assert walk.next_nodes() == []
