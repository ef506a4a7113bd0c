"""Datasets of events and calls decoded by ABI. Each event and function has its own dataset with typed columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from ophion.abi.codec import Codec
from ophion.abi.interface import EventType, Function
from ophion.data.abi_files import AbiEntry
from ophion.data.arrow import arrow_schema
from ophion.data.dataset_types import Column, ColumnType, Dataset
from ophion.data.datasets import LOGS, TRANSACTIONS
from ophion.data.optional_packages import require
from ophion.data.selection import Rows
from ophion.data.table_reader import BlockRef, Finality, TableRead, TableReader
from ophion.errors import AbiError
from ophion.primitives.hexcodec import data as hex_text

_LOG_COLUMNS: Final = ("block_number", "timestamp", "transaction_index", "log_index", "transaction_hash", "address")
_CALL_COLUMNS: Final = (
    "block_number", "timestamp", "transaction_index", "transaction_hash", "from_address", "to_address", "success",
)  # fmt: skip
_TOPICS: Final = ("topic0", "topic1", "topic2", "topic3")


def dataset_of(entry: AbiEntry) -> Dataset:
    """Return the dataset of an event (`event_Transfer_ddf252ad`) or a function (`call_transfer_a9059cbb`)."""
    is_event = isinstance(entry, EventType)
    base, names = (LOGS, _LOG_COLUMNS) if is_event else (TRANSACTIONS, _CALL_COLUMNS)
    # a parameter must not be named `from`, because every file has a partition column of this name
    taken = {*names, "chain_id", "is_decoded", "from"}
    columns = [column for name in names if (column := base.column(name)) is not None]
    for at, (given, codec) in enumerate(zip(entry.inputs.names, entry.inputs.codecs, strict=True)):
        # make the column name unique, because a parameter may have the name of a column or of another parameter
        name = re.sub(r"\W", "_", given or f"arg{at}")
        while name in taken:
            name += "_"
        taken.add(name)
        columns.append(Column(name, column_type(codec), f"Parameter of type {codec.name}."))
    columns.append(Column("is_decoded", ColumnType.BOOL, "Whether the data fits the ABI; parameters are null if not."))
    selector = entry.topic[:4] if isinstance(entry, EventType) else entry.selector
    name = f"{'event' if is_event else 'call'}_{entry.name}_{selector.hex()}"
    filters = ("address", "topic") if is_event else ("from", "recipient")
    return Dataset(name, f"Decoded by ABI: {entry.signature}.", base.source, tuple(columns), filters)


def column_type(codec: Codec) -> ColumnType:
    """Return the column type of a parameter. Large numbers become decimal digits; lists and tuples become JSON."""
    name = codec.name
    if codec.item is not None or codec.components:
        return ColumnType.TEXT
    if name == "address":
        return ColumnType.ADDRESS
    if name == "bool":
        return ColumnType.BOOL
    if name.startswith("bytes") or name == "function":
        return ColumnType.BINARY
    if name.startswith(("uint", "int")):
        bits = int(name.lstrip("uint"))
        return ColumnType.TEXT if bits > 64 else ColumnType.U64 if name[0] == "u" else ColumnType.I64
    return ColumnType.TEXT


class DecodingReader:
    """A `TableReader` that adds decoded datasets to the datasets of another reader."""

    def __init__(self, reader: TableReader, entries: Sequence[AbiEntry]) -> None:
        self._reader = reader
        self.chain_id = reader.chain_id
        self._entries = {dataset_of(entry).name: entry for entry in entries}
        self.datasets = {dataset.name: dataset for dataset in map(dataset_of, entries)}

    def head(self) -> BlockRef:
        """Return number and hash of the newest block."""
        return self._reader.head()

    def block(self, number: int) -> BlockRef | None:
        """Return number and hash of the canonical block with this number."""
        return self._reader.block(number)

    def finality(self) -> Finality:
        """Return the rule that decides when a block of this network is final."""
        return self._reader.finality()

    def ranges(self, dataset: Dataset, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Split the blocks `first` to `last` into ranges that take about the same time to read."""
        return self._reader.ranges(dataset, first, last)

    def prepare(self, datasets: Sequence[Dataset]) -> None:
        """Let the underlying reader open what the datasets need."""
        self._reader.prepare(datasets)

    def table_read(self, dataset: Dataset) -> TableRead | None:
        """Return the function of the underlying reader that reads a dataset; None for decoded datasets."""
        return None if dataset.name in self._entries else self._reader.table_read(dataset)

    def batches(
        self, dataset: Dataset, columns: Sequence[Column], first: int, last: int, rows: Rows, hex: bool
    ) -> Iterator[Any]:
        """Yield record batches. If the dataset comes from an ABI, its rows are decoded from logs or calls."""
        entry = self._entries.get(dataset.name)
        if entry is None:
            yield from self._reader.batches(dataset, columns, first, last, rows, hex)
            return
        pa = require("pyarrow")
        is_event = isinstance(entry, EventType)
        base, place, extra = (
            (LOGS, _LOG_COLUMNS, (*_TOPICS, "data")) if is_event else (TRANSACTIONS, _CALL_COLUMNS, ("input",))
        )
        wanted = [column for column in base.columns if column.name in (*place, *extra)]
        if isinstance(entry, EventType):
            rows = Rows(rows.addresses, ((entry.topic,), *rows.topics[1:]), rows.senders, rows.recipients)
        schema = arrow_schema(dataset, dataset.columns, hex)
        for batch in self._reader.batches(base, wanted, first, last, rows, False):
            found = [
                row for one in batch.to_pylist() if (row := self._row(entry, dataset, one, len(place))) is not None
            ]
            arrays = [pa.array([_shown(row[at], hex) for row in found], field.type) for at, field in enumerate(schema)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema).select([column.name for column in columns])

    def _row(self, entry: AbiEntry, dataset: Dataset, source: dict[str, Any], places: int) -> list[Any] | None:
        """Decode one log or call. Returns its values in the order of the dataset's columns, or None if the row is a
        call of another function.
        """
        if isinstance(entry, Function) and source["input"][:4] != entry.selector:
            return None
        row = [source[column.name] for column in dataset.columns[:places]]
        try:
            if isinstance(entry, Function):
                values = entry.decode_input(source["input"])
            else:
                values = entry.values([source[name] for name in _TOPICS if source[name] is not None], source["data"])
        except AbiError:
            return [*row, *[None] * len(entry.inputs), False]
        shown = [_value(value, column.type) for value, column in zip(values, dataset.columns[places:], strict=False)]
        return [*row, *shown, True]

    def stop(self) -> None:
        """Stop reads of the underlying reader that run in other threads."""
        self._reader.stop()

    def close(self) -> None:
        """Close the underlying reader."""
        self._reader.close()


def _value(value: Any, column: ColumnType) -> Any:
    if column is not ColumnType.TEXT:
        return value
    plain = _plain(value)
    return plain if isinstance(plain, str) else orjson.dumps(plain).decode()


def _plain(value: Any) -> Any:
    """Return a value as text or JSON, with bytes as hexadecimal text and numbers as decimal digits."""
    if isinstance(value, str):
        # replace bytes that are not UTF-8
        return value if value.isascii() else value.encode(errors="surrogateescape").decode(errors="replace")
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return hex_text(value)
    return value if isinstance(value, bool) else str(value)


def _shown(value: Any, hex: bool) -> Any:
    return hex_text(value) if hex and isinstance(value, bytes) else value
