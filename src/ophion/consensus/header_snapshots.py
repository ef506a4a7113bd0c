"""States that are computed header by header (signers, vote tallies), available after any block of any branch.

Memory holds the states of the latest blocks. For another block, `HeaderSnapshots` walks back to the nearest known state
and applies the headers after it. Every few hundred blocks the chain stores the state on disk as a checkpoint, so that
the walk after a restart is short. A checkpoint belongs to a block hash, which determines all earlier headers. So the
checkpoint stays valid after a reorganisation.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeAlias, TypeVar

from ophion.consensus.engine import HeaderReader
from ophion.errors import DecodeError, UnknownParent
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32

S = TypeVar("S")

CHECKPOINT_DISTANCE: Final = 256
"""Number of blocks between checkpoints. Applying this many headers takes about 20 ms, mostly to recover signers."""
_KEPT: Final = 1024

Fresh: TypeAlias = Callable[[HashedHeader, HeaderReader], "S | None"]
"""Returns the state after a block at which the computation restarts, such as an epoch block. Returns None for other
blocks.
"""
Applied: TypeAlias = Callable[[S, HashedHeader], S]
"""Returns the state after a block, given the state before the block and its header."""


class HeaderSnapshots(Generic[S]):
    """Computes and caches the state after each block, by block hash."""

    def __init__(
        self, fresh: Fresh[S], applied: Applied[S], encode: Callable[[S], bytes], decode: Callable[[bytes], S]
    ) -> None:
        """Create the cache of states. `decode` reads the output of `encode`, or raises `DecodeError`."""
        self._fresh = fresh
        self._applied = applied
        self._encode = encode
        self._decode = decode
        self._known: OrderedDict[Hash32, S] = OrderedDict()

    def after(self, header: HashedHeader, chain: HeaderReader) -> S:
        """Return the state after `header`. All ancestors must be verified. Raises `UnknownParent` if an ancestor is
        missing.
        """
        pending: list[HashedHeader] = []
        cursor = header
        while (state := self._found(cursor, chain)) is None:
            pending.append(cursor)
            parent = chain.header(cursor.parent_hash)
            if parent is None:
                raise UnknownParent(cursor.number, cursor.parent_hash, cursor.number - 1)
            cursor = parent
        self.keep(cursor.hash, state)
        for block in reversed(pending):
            state = self._applied(state, block)
            self.keep(block.hash, state)
        return state

    def keep(self, block_hash: Hash32, state: S) -> None:
        """Cache the state after a block. Evicts the least recently used state."""
        # RPC threads read this cache while the importer writes, so each single step must leave the cache consistent
        self._known.pop(block_hash, None)
        self._known[block_hash] = state
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)

    def checkpoint(self, header: HashedHeader, chain: HeaderReader) -> bytes:
        """Return the encoded state (signers or vote tally) after a verified block."""
        return self._encode(self.after(header, chain))

    def _found(self, header: HashedHeader, chain: HeaderReader) -> S | None:
        state = self._known.get(header.hash)
        if state is None:
            # call `_fresh` before reading a checkpoint: a changed genesis file may set other signers at this block
            state = self._fresh(header, chain)
        if state is None and header.number % CHECKPOINT_DISTANCE == 0:
            record = chain.checkpoint(header.hash)
            try:
                state = None if record is None else self._decode(record)
            except DecodeError:
                return None  # another program version wrote this checkpoint, so compute the state again
        return state
