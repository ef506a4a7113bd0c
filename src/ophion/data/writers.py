"""Writes record batches to files: Parquet, Arrow, CSV and JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import IO, Any, Final

from ophion.data.dataset_types import Column
from ophion.data.optional_packages import require
from ophion.data.parquet import MAX_GROUP_BYTES, MAX_GROUP_ROWS


class FileFormat(Enum):
    """Format of exported files; the value is the suffix."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"
    NDJSON = "ndjson"

    @property
    def is_text(self) -> bool:
        """Whether the format is text, in which byte strings are hexadecimal."""
        return self in (FileFormat.CSV, FileFormat.NDJSON)


Batches = Iterable[Any]
Writer = Callable[[IO[bytes], Any, Sequence[Column], Batches], int]
"""Writes record batches of a schema to a file and returns the number of rows."""


def _parquet(file: IO[bytes], schema: Any, columns: Sequence[Column], batches: Batches) -> int:
    pa, parquet = require("pyarrow"), require("pyarrow.parquet")
    repeating = [column.name for column in columns if column.repeats]
    total, held, held_rows, held_bytes = 0, [], 0, 0
    writer = parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=repeating or False)
    try:
        for batch in batches:
            held.append(batch)
            held_rows += batch.num_rows
            held_bytes += batch.nbytes
            if held_rows >= MAX_GROUP_ROWS or held_bytes >= MAX_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(held, schema), row_group_size=held_rows)
                total, held, held_rows, held_bytes = total + held_rows, [], 0, 0
        if held_rows:
            writer.write_table(pa.Table.from_batches(held, schema), row_group_size=held_rows)
    finally:
        # close the writer even after an error, so that pyarrow frees its buffers before the error is handled
        writer.close()
    return total + held_rows


def _arrow(file: IO[bytes], schema: Any, columns: Sequence[Column], batches: Batches) -> int:
    pa = require("pyarrow")
    total = 0
    with pa.ipc.new_file(file, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for batch in batches:
            writer.write_batch(batch)
            total += batch.num_rows
    return total


def _csv(file: IO[bytes], schema: Any, columns: Sequence[Column], batches: Batches) -> int:
    pa, csv = require("pyarrow"), require("pyarrow.csv")
    # CSV has no decimal type, so decimals are written as text
    text = pa.schema([field.with_type(pa.string()) if pa.types.is_decimal(field.type) else field for field in schema])
    total = 0
    with csv.CSVWriter(file, text) as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch]).cast(text))
            total += batch.num_rows
    return total


def _ndjson(file: IO[bytes], schema: Any, columns: Sequence[Column], batches: Batches) -> int:
    import orjson  # lazy import: only this format needs orjson

    total = 0
    for batch in batches:
        rows = batch.to_pylist()
        file.write(b"".join(orjson.dumps(row, default=str, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
        total += len(rows)
    return total


WRITERS: Final[dict[FileFormat, Writer]] = {
    FileFormat.PARQUET: _parquet,
    FileFormat.ARROW: _arrow,
    FileFormat.CSV: _csv,
    FileFormat.NDJSON: _ndjson,
}
