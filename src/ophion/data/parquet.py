"""Writes tables of the Rust extension as Parquet files, without pyarrow (docs/decisions/0182-parquet-in-rust.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, Final

from ophion.data.dataset_types import Column, Dataset
from ophion.native.exceptions import translated
from ophion.native.tables import ParquetEncoder, TableData

MAX_GROUP_ROWS: Final = 128 * 1024
MAX_GROUP_BYTES: Final = 32 * 2**20
"""Maximum size of buffered columns in bytes, after which a row group is written."""
_MAX_SHARED_BYTES: Final = MAX_GROUP_BYTES // 2
"""The limit that several files share which are written together. Their blocks are executed, which needs memory too."""


class ParquetFile:
    """A Parquet file to which tables are appended. `columns` are the columns of these tables, in the order of the
    dataset.
    """

    def __init__(self, file: IO[bytes], dataset: Dataset, columns: Sequence[Column], hex: bool, threads: int) -> None:
        self.rows = 0
        self.held_bytes = 0
        self._file = file
        self._threads = threads
        self._held: list[TableData] = []
        self._held_rows = 0
        self._encoder = ParquetEncoder(
            dataset.name,
            [column.name for column in columns],
            [column.name for column in columns if column.repeats],
            list(dataset.metadata.items()),
            hex,
        )

    def add(self, table: TableData) -> None:
        """Buffer a table for the next row group. Writes the row group if it has enough rows."""
        self._held.append(table)
        self._held_rows += table.rows
        self.held_bytes += table.size
        if self._held_rows >= MAX_GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the buffered tables as a row group. Rust threads encode the columns without the GIL, and this thread
        writes each column as soon as the columns before it are written.
        """
        if self._held_rows:
            with translated():
                self._encoder.row_group(self._held, self._threads, self._file.write)
        self.rows += self._held_rows
        self._held, self._held_rows, self.held_bytes = [], 0, 0

    def finish(self) -> None:
        """Write the last row group and the footer of the file."""
        self.flush()
        self._file.write(self._encoder.finish())


def write_parquet(files: Sequence[ParquetFile], tables: Iterable[Sequence[TableData]]) -> None:
    """Write tables to files and finish the files. Each item of `tables` has one table for each file."""
    append_tables(files, tables)
    for file in files:
        file.finish()


def append_tables(files: Sequence[ParquetFile], tables: Iterable[Sequence[TableData]]) -> None:
    """Append tables to files. The files may buffer their last rows until they are finished."""
    max_bytes = MAX_GROUP_BYTES if len(files) == 1 else _MAX_SHARED_BYTES
    for together in tables:
        for file, table in zip(files, together, strict=True):
            file.add(table)
            del table
        del together  # free the tables, because the files have encoded their rows
        while sum(file.held_bytes for file in files) >= max_bytes:
            max(files, key=lambda file: file.held_bytes).flush()
