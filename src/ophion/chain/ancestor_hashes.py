"""Collects ancestor hashes for the BLOCKHASH instruction, newest first, concatenated as `BlockEnv` expects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ophion.native.store import Store
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import HASH_LENGTH, Hash32

MAX_ANCESTORS: Final = 256
"""Number of ancestors that BLOCKHASH can return (Yellow Paper, appendix H)."""
MAX_BYTES: Final = MAX_ANCESTORS * HASH_LENGTH


def ancestor_hashes(store: Store, header_of: Callable[[Hash32], HashedHeader | None], parent: HashedHeader) -> bytes:
    """Return the hashes of `parent` and of the blocks before it.

    The function walks from header to parent header with `header_of`, which also finds uncommitted headers. When the
    walk reaches a canonical block, the database returns all remaining hashes in one call.
    """
    hashes = [parent.hash]
    cursor = parent
    while len(hashes) < MAX_ANCESTORS and cursor.number > 0:
        if store.canonical_hash(cursor.number) == cursor.hash:
            first = max(cursor.number - (MAX_ANCESTORS - len(hashes)), 0)
            found = map(store.canonical_hash, range(cursor.number - 1, first - 1, -1))
            hashes.extend(block_hash for block_hash in found if block_hash is not None)
            break
        hashes.append(cursor.parent_hash)
        above = header_of(cursor.parent_hash)
        if above is None:
            break
        cursor = above
    return b"".join(hashes)
