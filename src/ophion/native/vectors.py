"""Runners for the public state and transaction tests. Each runner takes the bytes of one file.

An outcome is (case, fork and indexes, passed or None when skipped, detail).
"""

from ophion._native import state_test, transaction_test

__all__ = ["state_test", "transaction_test"]
