"""Deletes database entries that a new node does not need and that the verification does not cover."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ophion.chain.chain import FIRST_STATE_KEY
from ophion.errors import CheckpointError
from ophion.native.store import Store

_ROWS_A_STEP: Final = 10_000


def remove_rest(store: Store, on_removed: Callable[[int], None]) -> None:
    """Delete side blocks, private data, settings that the other node has stored, and all states except the states of
    genesis and head.

    `on_removed` is called with the number of deleted trie nodes. Errors of the Rust extension are raised unchanged.
    """
    head = store.head()
    if head is None:
        raise CheckpointError("it holds no chain")
    store.retain_checked()
    store.put_meta(FIRST_STATE_KEY, head[1].to_bytes(8, "big"))
    pruning = store.begin_pruning(head[1])
    for step in (pruning.forget, pruning.mark, pruning.sweep):
        while step(_ROWS_A_STEP):
            on_removed(pruning.freed)
