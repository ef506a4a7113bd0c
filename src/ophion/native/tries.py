"""Roots of in-memory tries, and proof verification."""

from ophion._native import ordered_root, trie_root, verify_proof

__all__ = ["ordered_root", "trie_root", "verify_proof"]
