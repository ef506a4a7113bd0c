"""Rust functions that read datasets of the chain into column buffers in Arrow's layout."""

from ophion._native import (
    ColumnBuffer,
    ParquetEncoder,
    ReplayStop,
    RowFilter,
    TableData,
    block_ranges,
    replay_tables,
    scan_table,
    table_columns,
)

__all__ = [
    "ColumnBuffer",
    "ParquetEncoder",
    "ReplayStop",
    "RowFilter",
    "TableData",
    "block_ranges",
    "replay_tables",
    "scan_table",
    "table_columns",
]
