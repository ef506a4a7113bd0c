"""Reads datasets from the node's own database, even while the node runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

import msgspec

from ophion.data.arrow import arrow_schema, record_batch
from ophion.data.dataset_types import Column, Dataset, Source
from ophion.data.selection import Rows
from ophion.data.table_reader import BlockRef, Finality, LastTables, Table, TableRead
from ophion.errors import CommandError, StorageError
from ophion.native.exceptions import translated
from ophion.native.store import RULES_KEY
from ophion.native.tables import ReplayStop, TableData, block_ranges, replay_tables, scan_table
from ophion.node.datadir import DataDirectory

if TYPE_CHECKING:
    from ophion.chainspec.genesis import Genesis
    from ophion.data.executable_chain import ExecutableChain

MAX_BATCH_BYTES: Final = 8 * 2**20
_TRANSACTIONS_PER_RANGE: Final = {Source.STORED: 8_000, Source.EXECUTED: 4_000}
_HEADERS_PER_RANGE: Final = 2_000
CLIQUE_DEPTH: Final = 64
"""Number of later blocks that --follow waits for before it exports a block, on a network without finality."""


class DatabaseReader:
    """A `TableReader` over LMDB. Reads see only committed blocks and never delay the node."""

    def __init__(self, data_path: Path, genesis: Callable[[], Genesis] | None = None, is_default: bool = False) -> None:
        """Open the database. `genesis` returns the genesis file; it is called only for datasets that execute blocks or
        recover seals. `is_default` means that no file was given.
        """
        self._directory = DataDirectory.beside_a_node(data_path)
        finalize(self, self._directory.close)
        self._store = self._directory.store(read_only=True)
        self._genesis = genesis
        self._is_default = is_default
        self._chain: ExecutableChain | None = None
        self._opening = threading.Lock()
        self._stop = ReplayStop()
        with translated():
            record = self._store.meta(RULES_KEY)
            has_blocks = self._store.head() is not None
        rules: dict[str, list[Any]] = msgspec.json.decode(record or b"{}")
        if not has_blocks:
            self.close()
            raise StorageError(f"There is no chain in {data_path}.")
        if not {"chainId", "consensus"} <= rules.keys():
            self.close()
            raise StorageError(
                f"The database in {data_path} is of an older Ophion. Start a node of this version on it once, which"
                " stores the rules of the network; then run the command again."
            )
        self.chain_id: int = int(rules["chainId"][0] or 0)
        self._engine = str(rules["consensus"][0])

    def head(self) -> BlockRef:
        """Return number and hash of the newest block."""
        with translated():
            head = self._store.head()
        if head is None:
            raise StorageError("The database is empty.")
        return BlockRef(head[1], head[0])

    def block(self, number: int) -> BlockRef | None:
        """Return number and hash of the canonical block with this number."""
        with translated():
            found = self._store.canonical_hash(number)
        return None if found is None else BlockRef(number, found)

    def finality(self) -> Finality:
        """Return the rule that decides when a block of this network is final."""
        # lazy import: only --follow needs this module
        from ophion.chainspec.consensus_parameters import EngineKind

        if self._engine in {EngineKind.IBFT2.value, EngineKind.IBFT.value, EngineKind.QBFT.value}:
            return Finality(0, f"{self._engine} finalises every block")
        return Finality(CLIQUE_DEPTH, f"{self._engine} has no finality; {CLIQUE_DEPTH} blocks are waited for")

    def ranges(self, dataset: Dataset, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Split a range of blocks into ranges with similar numbers of transactions; to recover seals, with equal
        numbers of blocks.
        """
        self._check(dataset)
        if dataset.source is Source.SEALED:
            return [
                (start, min(start + _HEADERS_PER_RANGE - 1, last))
                for start in range(first, last + 1, _HEADERS_PER_RANGE)
            ]
        with translated():
            ends = block_ranges(self._store, first, last, _TRANSACTIONS_PER_RANGE[dataset.source])
        starts = [first, *(end + 1 for end in ends)]
        return list(zip(starts, ends, strict=False))

    def batches(
        self, dataset: Dataset, columns: Sequence[Column], first: int, last: int, rows: Rows, hex: bool
    ) -> Iterator[Any]:
        """Yield Arrow record batches of blocks `first` to `last`. Rust fills the columns without the GIL."""
        self._check(dataset)
        schema = arrow_schema(dataset, columns, hex)
        if dataset.source is not Source.SEALED:
            for (table,) in self._tables([(dataset, columns)], first, last, rows, hex):
                yield record_batch(schema, table)
            return
        from ophion.data.validator_rows import validator_batch

        for start, end in self.ranges(dataset, first, last):
            with translated():
                batch = validator_batch(self.chain(dataset.name).chain, dataset, columns, start, end, rows, hex)
            yield batch

    def prepare(self, datasets: Sequence[Dataset]) -> None:
        """Read the genesis file and open the chain, if a dataset executes blocks or recovers seals."""
        for dataset in datasets:
            if dataset.source in (Source.EXECUTED, Source.SEALED):
                self.chain(dataset.name)

    def table_read(self, dataset: Dataset) -> TableRead | None:
        """Return the function that reads the tables of a dataset; None for a dataset that recovers seals."""
        self._check(dataset)
        return None if dataset.source is Source.SEALED else self._tables

    def _check(self, dataset: Dataset) -> None:
        if dataset.source is Source.MEMBER:
            raise CommandError(
                f"The dataset {dataset.name} needs --rpc=URL: payloads are encrypted, and only the node decrypts them."
            )

    def _tables(
        self, wanted: Sequence[Table], first: int, last: int, rows: Rows, hex: bool
    ) -> Iterator[list[TableData]]:
        selected = rows.filter()
        named = [(dataset.name, [column.name for column in columns]) for dataset, columns in wanted]
        dataset = wanted[0][0]
        if dataset.source is Source.EXECUTED:
            for start, end in self.ranges(dataset, first, last):
                blocks = self.chain(dataset.name).traced_blocks(start, end)
                while blocks:
                    with translated():
                        done, tables = replay_tables(
                            blocks, named, selected, self.chain_id, hex, self._stop, MAX_BATCH_BYTES
                        )
                    del blocks[:done]
                    yield LastTables(tables) if end == last and not blocks else tables
                    del tables  # release the memory before the next execution
            return
        ((name, names),) = named
        while first <= last:
            with translated():
                first, table = scan_table(
                    self._store, name, names, first, last, selected, self.chain_id, hex, MAX_BATCH_BYTES
                )
            if table.rows:
                yield LastTables([table]) if first > last else [table]
            del table

    def chain(self, dataset: str) -> ExecutableChain:
        """Return the chain with its rules. Executing blocks and recovering seals need these rules."""
        with self._opening:
            if self._chain is None:
                from ophion.data.executable_chain import ExecutableChain

                if self._genesis is None:
                    raise CommandError(f"The dataset {dataset} needs the genesis file of the network.")
                self._chain = ExecutableChain(self._store, self._genesis(), dataset, self._is_default)
            return self._chain

    def stop(self) -> None:
        """Stop the execution of blocks for datasets in other threads."""
        self._stop.set()

    def close(self) -> None:
        """Close the database."""
        self._directory.close()
