"""Tests Merkle proofs, compared with the roots that Rust computes."""

from __future__ import annotations

import random

import pytest

from ophion.errors import ProofError
from ophion.native.crypto import keccak256
from ophion.native.tries import ordered_root, trie_root
from ophion.primitives.types import EMPTY_TRIE_ROOT
from ophion.proofs.merkle import index_key, ordered_proof, proven_value


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 127, 128, 129, 200, 256, 257, 700])
@pytest.mark.parametrize("size", [1, 20, 200])
def test_every_position_of_an_ordered_trie_is_proven(count: int, size: int) -> None:
    values = [(position + 1).to_bytes(2, "big") * size for position in range(count)]
    root = ordered_root(values)
    for position in {0, 1, count // 2, count - 1} & set(range(count)):
        found, nodes = ordered_proof(values, position)
        assert found == root
        assert proven_value(root, index_key(position), nodes, "value") == values[position]


def test_a_proof_does_not_fit_another_position_or_root() -> None:
    values = [bytes([position]) * 40 for position in range(1, 60)]
    root, nodes = ordered_proof(values, 7)
    with pytest.raises(ProofError, match="does not have the hash"):
        proven_value(root, index_key(40), nodes, "value")
    with pytest.raises(ProofError, match="node 0 of the proof does not have the hash"):
        proven_value(keccak256(b"other"), index_key(7), nodes, "value")
    with pytest.raises(ProofError, match="ends before the value"):
        proven_value(root, index_key(7), nodes[:-1], "value")
    with pytest.raises(ProofError, match="1 nodes after the end"):
        proven_value(root, index_key(7), [*nodes, nodes[-1]], "value")


def test_any_changed_byte_is_refused() -> None:
    values = [bytes([position]) * 40 for position in range(1, 200)]
    root, nodes = ordered_proof(values, 150)
    chance = random.Random(1)
    for _ in range(300):
        changed = [bytearray(node) for node in nodes]
        node = chance.choice(changed)
        node[chance.randrange(len(node))] ^= chance.randrange(1, 256)
        with pytest.raises(ProofError, match="does not have the hash"):
            proven_value(root, index_key(150), [bytes(one) for one in changed], "value")


def test_an_empty_trie_proves_absence() -> None:
    assert trie_root([], False) == EMPTY_TRIE_ROOT
    assert proven_value(EMPTY_TRIE_ROOT, b"key", [], "value") is None
    with pytest.raises(ProofError, match="ends before the value"):
        proven_value(keccak256(b"root"), b"key", [], "value")
