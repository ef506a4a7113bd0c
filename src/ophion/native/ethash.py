"""Light ethash (without the full dataset): verifies proof of work, and searches nonces on networks of low
difficulty.
"""

from ophion._native import ethash_compute, ethash_search, ethash_seed

__all__ = ["ethash_compute", "ethash_search", "ethash_seed"]
