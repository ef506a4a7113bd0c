"""Decides which queries of clients are executed: one SELECT over the datasets, without files, settings or catalogs.

DuckDB itself refuses files and extensions in a sealed connection (`sql_server`). This check runs first, because some
table functions read memory by address, and no setting of DuckDB disables these functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from ophion.errors import CommandError

MAX_QUERY_CHARS: Final = 64 * 1024
_TABLE_FUNCTIONS: Final = frozenset({"generate_series", "range", "unnest"})
_REFUSED_FUNCTIONS: Final = frozenset({"current_setting", "getenv", "getvariable", "sleep_ms", "write_log"})
_CTE_NAME: Final = re.compile(r"(?!duckdb_|pg_|pragma_|sqlite_|information_schema)[a-z_]\w*", re.IGNORECASE)
_KNOWN_TABLES: Final = frozenset(
    {"BASE_TABLE", "COLUMN_DATA", "CTE", "EMPTY", "EMPTY_FROM", "EXPRESSION_LIST", "JOIN", "PIVOT", "SUBQUERY"}
)
_TABLE_KINDS: Final = _KNOWN_TABLES | {"TABLE_FUNCTION", "SHOW_REF", "BOUND_TABLE_REF", "DELIM_GET", "INVALID"}


def check_query(connection: Any, text: str, datasets: Collection[str]) -> None:
    """Raise `CommandError` unless the text is one SELECT that reads only datasets."""
    if len(text) > MAX_QUERY_CHARS:
        raise CommandError(f"A query has at most {MAX_QUERY_CHARS} characters.")
    if "\0" in text:
        raise CommandError("A query must not contain a zero byte.")
    (serialized,) = connection.execute("select json_serialize_sql(?)", [text]).fetchone()
    try:
        parsed = json.loads(serialized)
    except RecursionError:
        raise CommandError("The query nests too deeply.") from None
    if parsed.get("error"):
        kind, message = parsed.get("error_type"), parsed.get("error_message", "")
        if kind == "not implemented":
            raise CommandError("Only SELECT is allowed here.")
        raise CommandError(f"SQL: {message}")
    if len(parsed["statements"]) != 1:
        raise CommandError("One statement is expected.")
    nodes = list(_nodes(parsed["statements"][0]))
    allowed = {*datasets, *_cte_names(nodes)}
    for node in nodes:
        _check_node(node, allowed)


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of the syntax tree, without recursion: a query may nest deeply."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


def _cte_names(nodes: Collection[dict[str, Any]]) -> Iterator[str]:
    for node in nodes:
        for entry in (node.get("cte_map") or {}).get("map", ()):
            if not _CTE_NAME.fullmatch(entry["key"]):
                raise CommandError(f"'{entry['key']}' cannot name a part of a query here.")
            yield entry["key"]


def _check_node(node: dict[str, Any], allowed: Collection[str]) -> None:
    kind = str(node.get("type"))  # `type` is a text for syntax nodes, but an object for constants
    if kind == "BASE_TABLE":
        name = node["table_name"]
        if node.get("schema_name") or node.get("catalog_name") or name.lower() not in {one.lower() for one in allowed}:
            raise CommandError(f"There is no table '{name}'. `sql_tables` lists the tables.")
    elif kind == "TABLE_FUNCTION":
        name = node["function"]["function_name"].lower()
        if name not in _TABLE_FUNCTIONS:
            raise CommandError(f"The table function {name} is not allowed here.")
    elif kind in _TABLE_KINDS and kind not in _KNOWN_TABLES:
        raise CommandError("Only SELECT is allowed here.")
    elif node.get("class") == "FUNCTION" and str(node.get("function_name", "")).lower() in _REFUSED_FUNCTIONS:
        raise CommandError(f"The function {node['function_name']} is not allowed here.")
