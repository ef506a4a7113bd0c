"""Roots of tries that are built and forgotten, and the verification of proofs."""

from ophion._native import ordered_root, trie_root, verify_proof

__all__ = ["ordered_root", "trie_root", "verify_proof"]
