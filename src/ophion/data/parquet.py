"""Writes tables of the extension as Parquet files, without pyarrow (docs/decisions/0182-parquet-in-rust.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, Final

from ophion.data.schema import Column, Dataset
from ophion.native.exceptions import translated
from ophion.native.tables import ParquetEncoder, TableData

MAX_GROUP_ROWS: Final = 128 * 1024
MAX_GROUP_BYTES: Final = 32 * 2**20
"""Size of the columns in memory after which a row group ends."""


def write_parquet(
    file: IO[bytes], dataset: Dataset, columns: Sequence[Column], hex: bool, tables: Iterable[TableData], threads: int
) -> int:
    """Write tables to a file and return the number of rows. Columns are encoded by several threads without the GIL."""
    encoder = ParquetEncoder(
        dataset.name,
        [column.name for column in columns],
        [column.name for column in columns if column.repeats],
        list(dataset.metadata.items()),
        hex,
    )
    held: list[TableData] = []
    total = rows = size = 0

    def flush() -> None:
        nonlocal total, held, rows, size
        if rows:
            with translated():
                encoded = encoder.row_group(held, threads)
            file.write(encoded)
        total, held, rows, size = total + rows, [], 0, 0

    for table in tables:
        held.append(table)
        rows += table.rows
        size += table.size
        if rows >= MAX_GROUP_ROWS or size >= MAX_GROUP_BYTES:
            flush()
    flush()
    file.write(encoder.finish())
    return total
