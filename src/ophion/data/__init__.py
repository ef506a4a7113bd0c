"""The chain as tables: Parquet, CSV, JSON lines, Arrow, data frames and SQL.

    from ophion.data import open_chain
    open_chain("data").logs(event="Transfer(address,address,uint256)").to_pandas()

    dataset_types      types of datasets and columns
    datasets           every table: columns, types, documentation
    selection          which rows and columns to read: filters, number formats
    arrow              converts column buffers to Arrow record batches
    table_reader       `TableReader`: the interface of all sources of rows
    database_reader    source: the node's own database, even while the node runs
    executable_chain   a stored chain with its rules, for datasets that execute blocks
    validator_rows     rows of the dataset `validators`: proposers, seals, votes
    rpc_reader         source: any node over JSON-RPC
    rpc_rows           JSON objects of a node to rows
    abi                contract ABIs: files, decoding of values
    decoded_datasets   events and calls by ABI, one table each
    writers            file formats by pyarrow
    parquet            Parquet files by the Rust extension
    export_target      directory or fsspec URL that files are written to
    manifest           list of the files, with row counts and checksums
    export             the plan of an export, and its execution
    continuous_export  exports blocks as they become final, and joins small files
    data_frames        `open_chain`: datasets as Arrow tables and data frames
    read_ahead         reads block ranges ahead in other threads
    sql                DuckDB over the chain
    sql_guard          which queries of clients are executed
    sql_server         the process that answers queries of a node's clients
    spark              the format `ophion` of Apache Spark

The packages of the extra `ophion[data]` are imported when they are needed (docs/data.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ophion.data.data_frames import open_chain

__all__ = ["open_chain"]


def __getattr__(name: str) -> Any:
    """Import `open_chain` at its first use, because `ophion export` does not need it."""
    if name != "open_chain":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ophion.data.data_frames import open_chain

    return open_chain
