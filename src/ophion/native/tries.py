"""Rust functions that compute trie roots in memory and verify Merkle proofs."""

from ophion._native import ordered_root, trie_root, verify_proof

__all__ = ["ordered_root", "trie_root", "verify_proof"]
