"""`TableReader`: where the rows of a dataset come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ophion.data.datasets import Column, Dataset
from ophion.data.selection import Rows


class Finality(Struct, frozen=True):
    """The rule that decides when a block is final."""

    depth: int
    """Blocks upon a block after which it counts as final; 0 where consensus finalises every block."""
    reason: str


class BlockRef(Struct, frozen=True):
    """A block of the canonical chain."""

    number: int
    hash: bytes


class TableReader(Protocol):
    """Reads datasets of one chain. A reader may be used by several threads."""

    chain_id: int

    def head(self) -> BlockRef:
        """Return the newest block."""

    def block(self, number: int) -> BlockRef | None:
        """Return a canonical block."""

    def finality(self) -> Finality:
        """Return when blocks of this network are final."""

    def ranges(self, dataset: Dataset, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Split blocks into ranges that fit into memory."""

    def batches(
        self, dataset: Dataset, columns: Sequence[Column], first: int, last: int, rows: Rows, hex: bool
    ) -> Iterator[Any]:
        """Yield record batches of blocks `first` to `last`, in order."""

    def stop(self) -> None:
        """Stop the reads of other threads."""

    def close(self) -> None:
        """Release the source."""
