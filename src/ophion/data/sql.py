"""SQL over the chain: DuckDB, with every dataset as a table.

DuckDB passes the columns and conditions of a query to the scan. Block ranges, addresses and topics in the conditions
limit which blocks are read. The scan applies the whole condition to the rows it has read, so other conditions are
correct but do not make a query faster.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from ophion.data.data_frames import ChainTables
from ophion.data.dataset_types import Dataset
from ophion.data.datasets import ALL
from ophion.data.optional_packages import require
from ophion.data.read_ahead import read_ahead
from ophion.data.selection import NUMBER_FORMS, Format, Rows, columns_of
from ophion.errors import CommandError, OphionError

_BOUND: Final = re.compile(r"\(block_number (>=|>|<=|<|==) (\d+)\)")
_EQUAL: Final = re.compile(r'\((\w+) == "([0-9A-F]{40}|[0-9A-F]{64})"\)')
_NOT_A_CONJUNCTION: Final = re.compile(r"\bor\b|invert|if_else|!=")
_MACROS: Final = (
    "create macro to_bytes(text) as unhex(replace(text, '0x', ''))",
    "create macro to_hex(bytes) as '0x' || lower(hex(bytes))",
)
_FORMS: Final = Format(NUMBER_FORMS)


class Bounds(Struct, frozen=True):
    """The block range and the row filters of a condition, which limit the blocks to read."""

    first: int
    last: int
    rows: Rows


def bounds_of(condition: str, dataset: Dataset, head: int) -> Bounds:
    """Read block range and row filters out of a condition, given as the text of an Arrow expression. Only conjunctions
    are understood; any other condition gives all blocks.
    """
    if _NOT_A_CONJUNCTION.search(condition):
        return Bounds(0, head, Rows())
    first, last = 0, head
    for operator, text in _BOUND.findall(condition):
        number = int(text)
        if operator in (">=", ">", "=="):
            first = max(first, number + (operator == ">"))
        if operator in ("<=", "<", "=="):
            last = min(last, number - (operator == "<"))
    equal = {name: bytes.fromhex(value) for name, value in _EQUAL.findall(condition)}

    def among(name: str, filter: str) -> tuple[bytes, ...]:
        return (equal[name],) if name in equal and filter in dataset.filters else ()

    token = "erc20" if dataset.column("erc20") is not None else "address"
    topics = tuple(among(f"topic{at}", "topic") or None for at in range(4)) if "topic" in dataset.filters else ()
    while topics and topics[-1] is None:
        topics = topics[:-1]
    is_of_parties = dataset.name in ("transactions", "native_transfers")
    rows = Rows(
        addresses=among(token, "address"),
        topics=topics,
        senders=among("from_address", "from") if is_of_parties else (),
        recipients=among("to_address", "recipient") if is_of_parties else (),
    )
    return Bounds(first, last, rows)


def connect(chain: ChainTables, failures: list[OphionError], datasets: Iterable[Dataset] = tuple(ALL.values())) -> Any:
    """Return a DuckDB connection in which each of the datasets is a table.

    `failures` gets every error of a scan, because DuckDB reports such an error with a traceback.
    """
    duckdb = require("duckdb")
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    for macro in _MACROS:
        connection.execute(macro)
    for dataset in datasets:
        connection.register(dataset.name, _scanned(chain, dataset, failures))
    return connection


def _scanned(chain: ChainTables, dataset: Dataset, failures: list[OphionError]) -> Any:
    """Return a dataset as an object that DuckDB accepts as an Arrow dataset."""
    arrow = require("pyarrow.dataset")
    whole = chain.dataset(dataset.name, numbers=NUMBER_FORMS).schema

    def scanner(_: Any, columns: list[str] | None = None, filter: Any = None, **_options: Any) -> Any:
        text = "" if filter is None else str(filter)
        named = {column.name for column in dataset.columns if re.search(rf"\b{column.name}\b", text)}
        wanted = None if columns is None else tuple(named.union(columns))
        return _scan(chain, dataset, wanted or None, columns, filter, text, failures)

    # Arrow makes datasets only from files, so imitate the two members that DuckDB uses: `schema` and `scanner`.
    kind: Any = type("ChainDataset", (arrow.Dataset,), {"schema": property(lambda _: whole), "scanner": scanner})
    return kind.__new__(kind)


def _scan(
    chain: ChainTables,
    dataset: Dataset,
    wanted: tuple[str, ...] | None,
    columns: list[str] | None,
    filter: Any,
    text: str,
    failures: list[OphionError],
) -> Any:
    arrow = require("pyarrow.dataset")
    reader = chain.reader
    bounds = bounds_of(text, dataset, reader.head().number)
    selected = columns_of(dataset, _FORMS, wanted or (dataset.columns[0].name,) if columns is not None else None)
    schema = chain.dataset(dataset.name, columns=[column.name for column in selected]).schema

    def read(first: int, last: int) -> Iterator[Any]:
        return reader.batches(dataset, selected, first, last, bounds.rows, False)

    def batches() -> Iterator[Any]:
        if bounds.first > bounds.last:
            return
        if bounds.rows == Rows():
            yield from read_ahead(reader.ranges(dataset, bounds.first, bounds.last), read, os.cpu_count() or 1)
        else:
            # conditions on addresses or topics use the log index, which is faster than reading block ranges
            yield from reader.batches(dataset, selected, bounds.first, bounds.last, bounds.rows, False)

    return arrow.Scanner.from_batches(_recorded(batches(), failures), schema=schema, columns=columns, filter=filter)


def _recorded(batches: Iterator[Any], failures: list[OphionError]) -> Iterator[Any]:
    """Yield all batches. If an error ends the scan, add the error to `failures`."""
    try:
        yield from batches
    except OphionError as error:
        failures.append(error)
        raise


def query_error(error: Exception, failures: list[OphionError]) -> str:
    """Return the message of a failed query: the error of its scan, or else DuckDB's error. Clears `failures`."""
    message = str(failures[0]) if failures else f"SQL: {error}"
    failures.clear()
    return message


def run_queries(connection: Any, text: str, failures: list[OphionError]) -> Iterator[Any]:
    """Execute statements and yield each result as an Arrow table. `CommandError` holds the message of a failure."""
    duckdb = require("duckdb")
    try:
        for statement in connection.extract_statements(text):
            relation = connection.sql(statement.query)
            if relation is not None:
                yield relation.to_arrow_table()
    except duckdb.Error as error:
        raise CommandError(query_error(error, failures)) from error
