"""Events and calls decoded by ABI: one dataset for each, with typed columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from ophion.data.abi import AbiEntry, AbiType, CannotDecode, decode_values, decode_word
from ophion.data.arrow import arrow_schema
from ophion.data.datasets import LOGS, TRANSACTIONS, Column, ColumnType, Dataset
from ophion.data.packages import require
from ophion.data.reader import BlockRef, Finality, TableReader
from ophion.data.selection import Rows
from ophion.primitives.hexcodec import data as hex_text

DECODED: Final = {"events": "event", "calls": "function"}
"""Names that stand for the decoded datasets, and the kind of ABI entry."""

_LOG_COLUMNS: Final = ("block_number", "timestamp", "transaction_index", "log_index", "transaction_hash", "address")
_CALL_COLUMNS: Final = (
    "block_number", "timestamp", "transaction_index", "transaction_hash", "from_address", "to_address", "success",
)  # fmt: skip
_TOPICS: Final = ("topic0", "topic1", "topic2", "topic3")


def dataset_of(entry: AbiEntry) -> Dataset:
    """Return the dataset of an event (`event_Transfer_ddf252ad`) or a function (`call_transfer_a9059cbb`)."""
    is_event = entry.kind == "event"
    base, names = (LOGS, _LOG_COLUMNS) if is_event else (TRANSACTIONS, _CALL_COLUMNS)
    # `from` is the partition column of every file
    taken = {*names, "chain_id", "is_decoded", "from"}
    columns = [column for name in names if (column := base.column(name)) is not None]
    for parameter in entry.parameters:
        # a parameter may have the name of a column, or of another parameter
        name = re.sub(r"\W", "_", parameter.name)
        while name in taken:
            name += "_"
        taken.add(name)
        columns.append(Column(name, column_type(parameter.type), f"Parameter of type {parameter.type.signature}."))
    columns.append(Column("is_decoded", ColumnType.BOOL, "Whether the data fits the ABI; parameters are null if not."))
    name = f"{'event' if is_event else 'call'}_{entry.name}_{entry.topic[:4].hex()}"
    filters = ("address", "topic") if is_event else ("from", "recipient")
    return Dataset(name, f"Decoded by ABI: {entry.signature}.", base.source, tuple(columns), filters)


def column_type(type: AbiType) -> ColumnType:
    """Return the type of a parameter's column; large numbers are decimal digits, lists and tuples JSON."""
    if type.name == "address":
        return ColumnType.ADDRESS
    if type.name == "bool":
        return ColumnType.BOOL
    if type.name.startswith("bytes"):
        return ColumnType.BINARY
    if type.name.startswith(("uint", "int")):
        bits = int(type.name.lstrip("uint"))
        return ColumnType.TEXT if bits > 64 else ColumnType.U64 if type.name[0] == "u" else ColumnType.I64
    return ColumnType.TEXT


class DecodingReader:
    """A `TableReader` that adds decoded datasets to those of another one."""

    def __init__(self, reader: TableReader, entries: Sequence[AbiEntry]) -> None:
        self._reader = reader
        self.chain_id = reader.chain_id
        self._entries = {dataset_of(entry).name: entry for entry in entries}
        self.datasets = {dataset.name: dataset for dataset in map(dataset_of, entries)}

    def head(self) -> BlockRef:
        """Return the newest block."""
        return self._reader.head()

    def block(self, number: int) -> BlockRef | None:
        """Return a canonical block."""
        return self._reader.block(number)

    def finality(self) -> Finality:
        """Return the finality of the network."""
        return self._reader.finality()

    def ranges(self, dataset: Dataset, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Split blocks into ranges."""
        return self._reader.ranges(dataset, first, last)

    def batches(
        self, dataset: Dataset, columns: Sequence[Column], first: int, last: int, rows: Rows, hex: bool
    ) -> Iterator[Any]:
        """Yield record batches, decoded where the dataset is one of an ABI."""
        entry = self._entries.get(dataset.name)
        if entry is None:
            yield from self._reader.batches(dataset, columns, first, last, rows, hex)
            return
        pa = require("pyarrow")
        is_event = entry.kind == "event"
        base, place, extra = (
            (LOGS, _LOG_COLUMNS, (*_TOPICS, "data")) if is_event else (TRANSACTIONS, _CALL_COLUMNS, ("input",))
        )
        wanted = [column for column in base.columns if column.name in (*place, *extra)]
        if is_event:
            rows = Rows(rows.addresses, ((entry.topic,), *rows.topics[1:]), rows.senders, rows.recipients)
        schema = arrow_schema(dataset, dataset.columns, hex)
        for batch in self._reader.batches(base, wanted, first, last, rows, False):
            found = [
                row for one in batch.to_pylist() if (row := self._row(entry, dataset, one, len(place))) is not None
            ]
            arrays = [pa.array([_shown(row[at], hex) for row in found], field.type) for at, field in enumerate(schema)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema).select([column.name for column in columns])

    def _row(self, entry: AbiEntry, dataset: Dataset, source: dict[str, Any], places: int) -> list[Any] | None:
        """Return the values of a row in the order of the dataset's columns; None for another function."""
        if entry.kind == "function" and source["input"][:4] != entry.topic[:4]:
            return None
        row = [source[column.name] for column in dataset.columns[:places]]
        try:
            values = _event_values(entry, source) if entry.kind == "event" else _call_values(entry, source)
        except CannotDecode:
            return [*row, *[None] * len(entry.parameters), False]
        shown = [
            _value(value, one.type, column.type)
            for value, one, column in zip(values, entry.parameters, dataset.columns[places:], strict=False)
        ]
        return [*row, *shown, True]

    def stop(self) -> None:
        """End the reads of other threads."""
        self._reader.stop()

    def close(self) -> None:
        """Release the source."""
        self._reader.close()


def _event_values(entry: AbiEntry, log: dict[str, Any]) -> list[Any]:
    topics = [log[name] for name in _TOPICS[1:] if log[name] is not None]
    indexed = [one for one in entry.parameters if one.is_indexed]
    if len(topics) != len(indexed):
        raise CannotDecode("the number of topics differs")
    others = iter(decode_values([one.type for one in entry.parameters if not one.is_indexed], log["data"]))
    named = iter(topics)
    return [_topic(one.type, next(named)) if one.is_indexed else next(others) for one in entry.parameters]


def _topic(type: AbiType, topic: bytes) -> Any:
    """An indexed value; of a value longer than a word only its hash is there."""
    is_word = type.item is None and type.name not in ("tuple", "bytes", "string")
    return decode_word(type, topic) if is_word else topic


def _call_values(entry: AbiEntry, transaction: dict[str, Any]) -> list[Any]:
    return decode_values([one.type for one in entry.parameters], transaction["input"][4:])


def _value(value: Any, type: AbiType, column: ColumnType) -> Any:
    if column is not ColumnType.TEXT or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return hex_text(value)
    return str(value) if isinstance(value, int) else orjson.dumps(_plain(value)).decode()


def _plain(value: Any) -> Any:
    """Values of lists as JSON: bytes as hexadecimal text, numbers as decimal digits."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return hex_text(value)
    return value if isinstance(value, bool | str) else str(value)


def _shown(value: Any, hex: bool) -> Any:
    return hex_text(value) if hex and isinstance(value, bytes) else value
