"""Ethash by the light algorithm: verification, and a search for networks with little difficulty."""

from ophion._native import ethash_compute, ethash_search, ethash_seed

__all__ = ["ethash_compute", "ethash_search", "ethash_seed"]
