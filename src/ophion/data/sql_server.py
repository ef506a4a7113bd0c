"""`ophion sql --serve`: the process of a node that answers the queries of its clients.

The process prints `ready`, then reads requests from standard input and writes answers to standard output, one JSON
object per line. The node ends the process when a query takes too long. DuckDB can read no file, load no extension and
change no setting. The operating system limits the memory of the process and refuses writes to files.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import orjson

from ophion.data.data_frames import ChainTables
from ophion.data.dataset_types import Source
from ophion.data.datasets import ALL
from ophion.data.optional_packages import require
from ophion.data.sql import connect, query_error
from ophion.data.sql_guard import check_query
from ophion.errors import CommandError, OphionError

MAX_RESULT_BYTES: Final = 8 * 2**20
_MEBIBYTE: Final = 2**20
_OVERHEAD_BYTES: Final = 256 * _MEBIBYTE
"""Additional memory in bytes, for thread stacks and for the columns that are read."""
_NICENESS: Final = 10
"""Process niceness of the SQL server, so that block import in the node has priority over queries."""
_THREADS: Final = 2
_GRACE_S: Final = 5
_MAX_SAFE_INTEGER: Final = 2**53 - 1
"""Largest integer that JavaScript represents exactly. Larger integers are sent as text."""
_ROWS_PER_FETCH: Final = 1024
_SEALED: Final = (
    "set timezone = 'UTC'",
    "set temp_directory = ''",
    "set enable_external_access = false",
    "set allow_community_extensions = false",
    "set autoload_known_extensions = false",
    "set autoinstall_known_extensions = false",
    "set python_enable_replacements = false",
    f"set threads = {_THREADS}",
    "set lock_configuration = true",
)
TABLES: Final = tuple(dataset for dataset in ALL.values() if dataset.source is not Source.MEMBER)
"""Datasets of the public chain, which clients may query."""


class SqlServer:
    """Answers queries over one chain."""

    def __init__(self, chain: ChainTables, max_rows: int, max_memory_mb: int) -> None:
        self._duckdb = require("duckdb")
        self._failures: list[OphionError] = []
        self._connection = connect(chain, self._failures, TABLES)
        self._connection.execute(f"set memory_limit = '{max_memory_mb}MiB'")
        for statement in _SEALED:
            self._connection.execute(statement)
        self._max_rows = max_rows
        self._max_memory_mb = max_memory_mb

    def answer(self, text: str) -> dict[str, Any]:
        """Execute a query. Returns columns and rows, or an error message."""
        began = time.monotonic()
        try:
            check_query(self._connection, text, [dataset.name for dataset in TABLES])
            result = self._executed(text)
            columns = [{"name": name, "type": str(kind)} for name, kind, *_ in result.description]
            rows, is_truncated = self._rows(result)
        except (self._duckdb.OutOfMemoryException, MemoryError):
            return {"error": f"The query needs more than {self._max_memory_mb} MiB of memory (--rpc-sql-max-memory)."}
        except self._duckdb.Error as error:
            return {"error": query_error(error, self._failures)}
        except OphionError as error:
            return {"error": str(error)}
        elapsed = round(1000 * (time.monotonic() - began), 1)
        return {"columns": columns, "rows": rows, "truncated": is_truncated, "elapsedMs": elapsed}

    def _executed(self, text: str) -> Any:
        """Execute a query. Times with a time zone become text, because DuckDB needs the package pytz to convert such
        times to Python objects.
        """
        result = self._connection.execute(text)
        is_zoned = ["WITH TIME ZONE" in str(kind) for _, kind, *_ in result.description]
        if not any(is_zoned):
            return result
        shown = (f"#{at}::varchar" if zoned else f"#{at}" for at, zoned in enumerate(is_zoned, 1))
        names = (name.replace('"', '""') for name, *_ in result.description)
        columns = ", ".join(f'{value} as "{name}"' for value, name in zip(shown, names, strict=True))
        # parse the query and print it again, which removes comments and the semicolon
        canonical = "select json_deserialize_sql(json_serialize_sql(?))"
        (query,) = self._connection.execute(canonical, [text]).fetchone()
        return self._connection.execute(f"select {columns} from ({query})")

    def _rows(self, result: Any) -> tuple[list[list[Any]], bool]:
        rows: list[list[Any]] = []
        size = 0
        while fetched := result.fetchmany(min(_ROWS_PER_FETCH, self._max_rows + 1 - len(rows))):
            for row in fetched:
                if len(rows) == self._max_rows:
                    return rows, True
                values = [shown(value) for value in row]
                size += len(orjson.dumps(values))
                if size > MAX_RESULT_BYTES:
                    raise CommandError(
                        f"The result exceeds {MAX_RESULT_BYTES // _MEBIBYTE} MiB. Select fewer rows or columns."
                    )
                rows.append(values)
        return rows, False


def shown(value: Any) -> Any:
    """Convert a value of a query result to a JSON value without loss of precision."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _MAX_SAFE_INTEGER else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return "0x" + bytes(value).hex()
    if isinstance(value, list):
        return [shown(one) for one in value]
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def serve(chain: ChainTables, max_rows: int, max_memory_mb: int, timeout_s: int) -> int:
    """Answer requests until the end of the input."""
    with suppress(OSError):
        os.nice(_NICENESS)
    server = SqlServer(chain, max_rows, max_memory_mb)
    _limit_process(_OVERHEAD_BYTES + 2 * max_memory_mb * _MEBIBYTE)
    sys.stdout.buffer.write(b"ready\n")
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        request = orjson.loads(line)
        # end this process after the timeout, even if the node was killed and cannot end it
        signal.alarm(timeout_s + _GRACE_S)
        answer = {"tables": _tables()} if "tables" in request else server.answer(request["query"])
        sys.stdout.buffer.write(orjson.dumps(answer, option=orjson.OPT_APPEND_NEWLINE))
        sys.stdout.buffer.flush()
        signal.alarm(0)
    return 0


def _tables() -> list[dict[str, Any]]:
    return [
        {
            "name": dataset.name,
            "description": dataset.doc,
            "columns": [
                {"name": column.name, "type": column.type.value, "description": column.doc}
                for column in dataset.columns
            ],
        }
        for dataset in TABLES
    ]


def _limit_process(more_bytes: int) -> None:
    """Limit memory to the current use plus `more_bytes`. Also forbids writes to files and core dumps."""
    if sys.platform == "linux":
        lines = Path("/proc/self/status").read_text().splitlines()
        used = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
        resource.setrlimit(resource.RLIMIT_DATA, (used + more_bytes, used + more_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
