"""Exports the canonical chain, or a part of it, to a file of concatenated RLP blocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ophion.errors import CommandError, StorageError
from ophion.native.exceptions import translated
from ophion.native.store import Store


def export_blocks(
    store: Store,
    path: Path,
    start: int | None = None,
    end: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write the blocks from `start` up to, but not including, `end`. The default is the whole chain. Returns the number
    of blocks.

    With `start`, appends to the file; otherwise overwrites it. `on_progress` receives (done, total).
    """
    first, stop = _bounds(store, start, end)
    if stop > 1:
        # raise an error before anything is written if a block of the range is not downloaded yet: old blocks are
        # downloaded newest first, so it is enough to read the lowest block above the genesis block
        _block(store, max(first, 1))
    try:
        with path.open("wb" if start is None else "ab") as file:
            for number in range(first, stop):
                file.write(_block(store, number))
                if on_progress is not None:
                    on_progress(number + 1 - first, stop - first)
    except OSError as error:
        raise CommandError(f"Unable to write {path}: {error.strerror}") from error
    return stop - first


def _bounds(store: Store, start: int | None, end: int | None) -> tuple[int, int]:
    with translated():
        head = store.head()
    if head is None:
        raise CommandError("There is no block to export: the database is empty.")
    if start is not None and start < 0:
        raise CommandError(f"--start-block must not be negative: {start}")
    if end is not None and end < 0:
        raise CommandError(f"--end-block must not be negative: {end}")
    first = 0 if start is None else start
    stop = head[1] + 1 if end is None else end
    if end is not None and end <= first:
        raise CommandError(f"--end-block ({end}) must be greater than --start-block ({first})")
    if first > head[1]:
        raise CommandError(f"There is no block {first} to export: the head is block {head[1]}.")
    return first, min(stop, head[1] + 1)


def _block(store: Store, number: int) -> bytes:
    with translated():
        block_hash = store.canonical_hash(number)
        block = store.block(block_hash) if block_hash is not None else None
    if block is None:
        raise StorageError(f"Block {number} is missing from the database; run `ophion storage check`.")
    return block
