"""Converts column buffers to Arrow record batches without copying the buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ophion.data.dataset_types import Column, ColumnType, Dataset
from ophion.data.optional_packages import require
from ophion.native.tables import TableData

_BYTES = {ColumnType.ADDRESS: 20, ColumnType.HASH: 32, ColumnType.BLOOM: 256}
_IS_BYTES = {*_BYTES, ColumnType.BINARY}


def arrow_type(type: ColumnType, hex: bool = False) -> Any:
    """Return the Arrow type of a column."""
    pa = require("pyarrow")
    if hex and type in _IS_BYTES:
        return pa.string()
    if type in _BYTES:
        return pa.binary(_BYTES[type])
    plain = {
        ColumnType.U32: pa.uint32,
        ColumnType.U64: pa.uint64,
        ColumnType.I64: pa.int64,
        ColumnType.F64: pa.float64,
        ColumnType.BOOL: pa.bool_,
        ColumnType.BINARY: pa.binary,
        ColumnType.TEXT: pa.string,
    }
    return pa.decimal128(38, 0) if type is ColumnType.DECIMAL else plain[type]()


def arrow_schema(dataset: Dataset, columns: Sequence[Column], hex: bool = False) -> Any:
    """Return the Arrow schema of these columns, with name and version of the dataset."""
    pa = require("pyarrow")
    fields = [pa.field(column.name, arrow_type(column.type, hex)) for column in columns]
    return pa.schema(fields, dataset.metadata)


def record_batch(schema: Any, table: TableData) -> Any:
    """Wrap the buffers of the Rust extension in a record batch. The batch keeps the buffers alive."""
    pa = require("pyarrow")
    arrays = []
    for field, (nulls, validity, offsets, values) in zip(schema, table.columns(), strict=True):
        buffers = [None if validity is None else pa.py_buffer(validity)]
        if offsets is not None:
            buffers.append(pa.py_buffer(offsets))
        buffers.append(pa.py_buffer(values))
        arrays.append(pa.Array.from_buffers(field.type, table.rows, buffers, nulls))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
