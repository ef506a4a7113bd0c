"""Runners for the public state and transaction tests. Each runner takes the bytes of one file.

An outcome has four fields: the case, its fork and indexes, whether it passed (None if skipped), and details.
"""

from ophion._native import state_test, transaction_test

__all__ = ["state_test", "transaction_test"]
