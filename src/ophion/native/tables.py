"""Tables of the chain as column buffers in Arrow's layout."""

from ophion._native import (
    ColumnBuffer,
    ReplayStop,
    RowFilter,
    block_ranges,
    replay_table,
    scan_table,
    table_columns,
)

__all__ = ["ColumnBuffer", "ReplayStop", "RowFilter", "block_ranges", "replay_table", "scan_table", "table_columns"]
