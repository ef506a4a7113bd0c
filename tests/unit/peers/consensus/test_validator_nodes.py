"""Tests nodes that act for a validator."""

from __future__ import annotations

from ophion.peers.consensus.validator_nodes import MAX_NODES, ValidatorNodes

VALIDATOR = b"\xaa" * 20
OTHER = b"\xbb" * 20
NODES = [bytes([n]) * 20 for n in range(MAX_NODES + 1)]


def test_a_node_without_a_proof_acts_for_itself() -> None:
    assert ValidatorNodes().validator_of(NODES[0]) == NODES[0]


def test_connected_nodes_of_one_validator_are_limited() -> None:
    nodes = ValidatorNodes()
    assert [nodes.connected(node, VALIDATOR) for node in NODES] == [True] * MAX_NODES + [False]
    assert nodes.validator_of(NODES[-1]) == NODES[-1]
    assert nodes.connected(NODES[-1], OTHER), "another validator has its own limit"


def test_a_new_node_takes_the_place_of_a_disconnected_one() -> None:
    nodes = ValidatorNodes()
    for node in NODES[:-1]:
        nodes.connected(node, VALIDATOR)
    nodes.disconnected(NODES[3], is_kept=True)
    assert nodes.validator_of(NODES[3]) == VALIDATOR
    assert nodes.connected(NODES[-1], VALIDATOR)
    assert nodes.validator_of(NODES[3]) == NODES[3]


def test_a_node_that_is_not_kept_leaves_nothing_behind() -> None:
    nodes = ValidatorNodes()
    nodes.connected(NODES[0], VALIDATOR)
    nodes.disconnected(NODES[0], is_kept=False)
    nodes.disconnected(NODES[1], is_kept=False)
    assert nodes.validator_of(NODES[0]) == NODES[0]
    assert not nodes._nodes
    assert not nodes._validators


def test_a_node_acts_for_one_validator_at_a_time() -> None:
    nodes = ValidatorNodes()
    nodes.connected(NODES[0], VALIDATOR)
    nodes.disconnected(NODES[0], is_kept=True)
    nodes.connected(NODES[0], OTHER)
    assert nodes.validator_of(NODES[0]) == OTHER
    assert VALIDATOR not in nodes._nodes
