"""The database: one LMDB environment for chain and state."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ophion._native import (
    AccountBatch,
    BlockHistory,
    LogStream,
    NewBlock,
    Pruning,
    State,
    StateDifference,
    StateDownload,
    Store,
)
from ophion.native.exceptions import translated

__all__ = [
    "RULES_KEY",
    "AccountBatch",
    "BlockHistory",
    "LogStream",
    "NewBlock",
    "Pruning",
    "State",
    "StateDifference",
    "StateDownload",
    "Store",
    "open_store",
]

RULES_KEY: Final = "rules"
"""Key under which `Store.meta` holds the rules of the network (`chainspec/config_compatibility.py`)."""


def open_store(path: Path, *, create: bool = True, read_only: bool = False, durable: bool = True) -> Store:
    """Open the database in this directory. Raises `StorageError`, which says in one line what is wrong and what to
    do.
    """
    with translated():
        return Store.open(str(path), create=create, read_only=read_only, durable=durable)
