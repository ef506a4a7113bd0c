from __future__ import annotations

from ophion.peers.discovery.endpoint_proofs import LASTS_S, EndpointProofs
from ophion.primitives.enode import Enode

A, B = b"a" * 64, b"b" * 64
NODE = Enode(A, "10.0.0.1", 1, 2)


def test_a_proof_belongs_to_a_node_and_an_address_and_lasts_twelve_hours() -> None:
    bonds = EndpointProofs()
    assert bonds.prove(NODE, 0.0)
    assert not bonds.prove(NODE, 10.0)
    assert bonds.proven(A, "10.0.0.1", 10.0 + LASTS_S - 1) == NODE
    assert bonds.proven(A, "10.0.0.1", 10.0 + LASTS_S) is None
    assert bonds.proven(A, "10.0.0.2", 10.0) is None
    assert bonds.proven(B, "10.0.0.1", 10.0) is None
    assert bonds.prove(NODE, 11.0 + LASTS_S)


def test_to_be_believed_is_another_matter() -> None:
    bonds = EndpointProofs()
    bonds.note_our_proof(A, "10.0.0.1", 0.0)
    assert bonds.has_our_proof(A, "10.0.0.1", 1.0)
    assert bonds.proven(A, "10.0.0.1", 1.0) is None


def test_what_is_remembered_is_bounded() -> None:
    bonds = EndpointProofs()
    for number in range(10_000):
        bonds.prove(Enode(number.to_bytes(64, "big"), "10.0.0.1", 1, 1), 0.0)
    assert len(bonds._proven) == 4096
    assert bonds.proven((9_999).to_bytes(64, "big"), "10.0.0.1", 1.0) is not None


def test_many_nodes_at_one_address_do_not_evict_the_proofs_of_others() -> None:
    bonds = EndpointProofs()
    bonds.prove(NODE, 0.0)
    bonds.note_our_proof(A, NODE.ip, 0.0)
    for number in range(5_000):
        bonds.prove(Enode(number.to_bytes(64, "big"), "10.0.0.2", 1, 1), 1.0)
        bonds.note_our_proof(number.to_bytes(64, "big"), "10.0.0.2", 1.0)
    assert bonds.proven(A, NODE.ip, 2.0) == NODE
    assert bonds.has_our_proof(A, NODE.ip, 2.0)
    for number in range(5_000):
        bonds.note_our_proof(A, f"10.{number // 250}.1.{number % 250}", 3.0)
    assert len(bonds._seen) == 4096
