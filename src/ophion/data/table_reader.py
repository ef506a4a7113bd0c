"""`TableReader`: the interface of the sources from which rows are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ophion.data.dataset_types import Column, Dataset
from ophion.data.selection import Rows
from ophion.native.tables import TableData


class Finality(Struct, frozen=True):
    """The rule that decides when a block is final."""

    depth: int
    """Number of later blocks after which a block counts as final; 0 if consensus finalises every block."""
    reason: str


class BlockRef(Struct, frozen=True):
    """A block of the canonical chain."""

    number: int
    hash: bytes


class LastTables(list[TableData]):
    """The last tables of a range, so that a reading thread knows that no tables follow."""


Table = tuple[Dataset, Sequence[Column]]
"""A dataset with the columns to read."""
TableRead = Callable[[Sequence[Table], int, int, Rows, bool], Iterator[list[TableData]]]
"""Function that reads one or several datasets together, and yields lists with one table per dataset. Only datasets that
need the execution of blocks can be read together.
"""


class TableReader(Protocol):
    """Reads datasets of one chain. Several threads may share a reader."""

    chain_id: int

    def head(self) -> BlockRef:
        """Return number and hash of the newest block."""

    def block(self, number: int) -> BlockRef | None:
        """Return number and hash of the canonical block with this number; None if there is no such block."""

    def finality(self) -> Finality:
        """Return the finality rule of the network."""

    def ranges(self, dataset: Dataset, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Split blocks into ranges that fit into memory."""

    def table_read(self, dataset: Dataset) -> TableRead | None:
        """Return the function that reads a dataset without pyarrow; None if the source has only record batches."""

    def prepare(self, datasets: Sequence[Dataset]) -> None:
        """Open what the datasets need besides the stored blocks, such as the genesis file. Raises if it is missing."""

    def batches(
        self, dataset: Dataset, columns: Sequence[Column], first: int, last: int, rows: Rows, hex: bool
    ) -> Iterator[Any]:
        """Yield record batches of blocks `first` to `last`, in order."""

    def stop(self) -> None:
        """Stop reads that run in other threads."""

    def close(self) -> None:
        """Close the database or the connections."""
