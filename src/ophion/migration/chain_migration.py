"""Imports the blocks of a source and compares the heads.

The database commits batches of blocks, so a killed run continues after the last batch. The number of the next block is
read from the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from ophion.chain.block_import import ImportCore
from ophion.chain.import_file import BlockFileImport, ImportProgress
from ophion.errors import CommandError
from ophion.migration.block_source import BlockSource, SourceHead
from ophion.runtime.clock import Clock


class MigrationResult(Struct, frozen=True):
    """Result of importing the chain of another client."""

    head: SourceHead
    """Head of the source, which is also the head of the new database."""
    blocks: int
    """Number of blocks that this run has imported."""
    transactions: int
    first: int
    """Number of the first block of this run."""


class ChainMigration:
    """Imports the chain of one source. If a run is interrupted, the next run continues after the last imported
    block.
    """

    def __init__(
        self,
        source: BlockSource,
        core: ImportCore,
        clock: Clock,
        on_progress: Callable[[int, int, int], None] | None = None,
        on_commit: Callable[[], None] | None = None,
    ) -> None:
        """Create a migration. `on_progress` receives first block, current block and head; `on_commit` is called after
        each batch.
        """
        self._source = source
        self._core = core
        self._clock = clock
        self._on_progress = on_progress
        self._on_commit = on_commit

    def run(self) -> MigrationResult:
        """Import up to the source's head, including blocks that a running source adds during the import.

        Raises `CommandError` if the source has another chain or another head, and the errors of the import.
        """
        self.check_genesis()
        first = self._first_missing(self._source.head())
        blocks = transactions = 0
        while True:
            head = self._source.head()
            start = self._first_missing(head)
            if start > head.number:
                break
            done = self._import(start, head.number, first)
            blocks += done.blocks
            transactions += done.transactions
            # if no block is new, the database has all blocks of the source, on a branch that lost the fork choice
            if not done.blocks:
                break
        self._check_head(head)
        return MigrationResult(head, blocks, transactions, first)

    def _import(self, start: int, last: int, first: int) -> ImportProgress:
        def show(now: ImportProgress) -> None:
            if self._on_progress is not None:
                self._on_progress(first, now.number, last)

        work = BlockFileImport(self._core, self._clock, show, on_commit=self._on_commit)
        client = self._source.client
        done = work.run_blocks(self._numbered(start, last), lambda number: f"block {number} of {client}")
        if self._core.chain.head.number < last and done.number < last:
            raise CommandError(f"{client} ended at block {done.number} of {last}.")
        return done

    def _numbered(self, start: int, last: int) -> Iterator[tuple[int, bytes]]:
        return zip(range(start, last + 1), self._source.blocks(start, last), strict=False)

    def check_genesis(self) -> None:
        """Raise `CommandError` if the source belongs to another network. `run` checks this too."""
        found, own = self._source.hash_at(0), self._core.chain.genesis.hash
        if found is not None and found != own:
            raise CommandError(
                f"The genesis file does not belong to this chain: block 0 of {self._source.client} is 0x{found.hex()},"
                f" the genesis file gives 0x{own.hex()}. Use the genesis file of the old node, with all its forks."
            )

    def _first_missing(self, head: SourceHead) -> int:
        """Return the number after the last block that both chains have."""
        chain = self._core.chain
        low, high = 0, min(chain.head.number, head.number)
        if self._is_common(high):
            return high + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._is_common(middle) else (low, middle)
        return low + 1

    def _is_common(self, number: int) -> bool:
        own = self._core.chain.canonical(number)
        return own is not None and own.hash == self._source.hash_at(number)

    def _check_head(self, head: SourceHead) -> None:
        own = self._core.chain.canonical(head.number)
        if own is None or own.hash != head.hash:
            found = "no block" if own is None else f"0x{own.hash.hex()}"
            raise CommandError(
                f"The chains differ: block {head.number} of {self._source.client} is 0x{head.hash.hex()}, here it is"
                f" {found}. Use an empty --data-path."
            )
