"""Light ethash: verification, and nonce search for networks of low difficulty."""

from ophion._native import ethash_compute, ethash_search, ethash_seed

__all__ = ["ethash_compute", "ethash_search", "ethash_seed"]
