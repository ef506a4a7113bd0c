"""`ophion sql`: queries over the chain, on DuckDB."""

from __future__ import annotations

import os
import sys
from enum import Enum
from pathlib import Path
from typing import Any

from ophion.cli.command import Command, CommandSession
from ophion.cli.url_option import read_url
from ophion.data.data_frames import ChainTables
from ophion.data.optional_packages import require
from ophion.data.sql import connect, run_queries
from ophion.errors import CommandError, ConfigError, OphionError
from ophion.node.datadir import DataConfig
from ophion.node.network import NetworkConfig, is_default_genesis, load_genesis
from ophion.runtime.options import Options, at_least, option


class ResultFormat(Enum):
    """Format of a query's result."""

    TABLE = "table"
    CSV = "csv"
    PARQUET = "parquet"


class SqlOptions(Options):
    """Options: source, output format and server limits of `ophion sql`."""

    rpc: str | None = option(
        "--rpc",
        default=None,
        parse=read_url("http", "https"),
        metavar="URL",
        help="Read from a node over JSON-RPC instead of --data-path.",
    )
    format: ResultFormat = option("--format", default=ResultFormat.TABLE, help="Format of the result.")
    serve: bool = option("--serve", default=False, hidden=True, help="Answer the queries of a node's clients.")
    serve_max_rows: int = option(
        "--serve-max-rows", default=10_000, check=at_least(1), hidden=True, help="Maximum rows of an answer."
    )
    serve_max_memory_mb: int = option(
        "--serve-max-memory", default=512, check=at_least(16), hidden=True, help="Memory of a query in MiB."
    )
    serve_timeout_s: int = option(
        "--serve-timeout", default=10, check=at_least(1), hidden=True, help="Seconds after which the node ends a query."
    )
    target: Path | None = option("--to", default=None, metavar="FILE", help="File of the result, for csv and parquet.")


def sql(options: SqlOptions, session: CommandSession) -> int:
    """Run the query in the argument. Without an argument, run queries from standard input, each ended by `;`."""
    require("duckdb")
    if options.format is ResultFormat.PARQUET and options.target is None:
        raise ConfigError("--format=parquet needs --to=FILE")
    with _chain(options, session) as chain:
        if options.serve:
            from ophion.data.sql_server import serve

            return serve(chain, options.serve_max_rows, options.serve_max_memory_mb, options.serve_timeout_s)
        failures: list[OphionError] = []
        connection = connect(chain, failures)
        if session.words:
            _show_all(connection, " ".join(session.words), options, failures)
            return 0
        return _shell(connection, options, failures)


def _chain(options: SqlOptions, session: CommandSession) -> ChainTables:
    if options.rpc is not None:
        from ophion.data.rpc_reader import RpcReader

        return ChainTables(RpcReader(options.rpc))
    from ophion.data.database_reader import DatabaseReader

    network = session.part(NetworkConfig)
    path = session.part(DataConfig).data_path
    return ChainTables(DatabaseReader(path, lambda: load_genesis(network), is_default_genesis(network)))


def _shell(connection: Any, options: SqlOptions, failures: list[OphionError]) -> int:
    """Run statements until the end of the input. An error ends a piped script, but not a terminal session."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        print("End a query with a semicolon, the session with Ctrl-D. `show tables;` lists the datasets.")
    held = ""
    while True:
        if is_terminal:
            print("sql> " if not held else "...> ", end="", flush=True)
        line = sys.stdin.readline()
        held += line
        if line and not held.rstrip().endswith(";"):
            continue
        if held.strip(" \n;"):
            try:
                _show_all(connection, held, options, failures)
            except CommandError as error:
                if not is_terminal:
                    raise
                print(error, file=sys.stderr)
        held = ""
        if not line:
            return 0


def _show_all(connection: Any, text: str, options: SqlOptions, failures: list[OphionError]) -> None:
    for table in run_queries(connection, text, failures):
        if options.target is None:
            _show(table, options)
            continue
        try:
            _show(table, options)
        except OSError as error:
            raise CommandError(f"Unable to write {options.target}: {os.strerror(error.errno or 0)}.") from error


def _show(table: Any, options: SqlOptions) -> None:
    if options.format is ResultFormat.PARQUET:
        require("pyarrow.parquet").write_table(table, options.target, compression="zstd")
        return
    names, rows = table.column_names, zip(*(column.to_pylist() for column in table.columns), strict=True)
    shown = [[_text(value) for value in row] for row in rows]
    if options.format is ResultFormat.CSV:
        lines = [",".join(_quoted(one) for one in row) for row in [names, *shown]]
    else:
        widths = [max(len(row[at]) for row in [names, *shown]) for at in range(len(names))]
        lines = ["  ".join(one.ljust(width) for one, width in zip(row, widths, strict=True)) for row in [names, *shown]]
        lines.insert(1, "  ".join("-" * width for width in widths))
    text = "".join(f"{line.rstrip()}\n" for line in lines)
    if options.target is None:
        sys.stdout.write(text)
    else:
        options.target.write_text(text)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(one in text for one in ',"\n') else text


COMMANDS = (
    Command(
        "sql",
        "Query the chain with SQL (DuckDB); every dataset is a table.",
        sql,
        SqlOptions,
        uses=(DataConfig, NetworkConfig),
        words="QUERY",
        examples=(
            'ophion sql "select from_address, count(*) from transactions group by 1 order by 2 desc limit 10"',
            'ophion sql --format=csv "select * from logs where block_number between 100 and 200"',
        ),
    ),
)
