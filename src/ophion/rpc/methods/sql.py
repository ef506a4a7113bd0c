"""sql_*: queries over the chain, executed by DuckDB in a process of its own (docs/data.md)."""

from __future__ import annotations

from typing import Annotated, Any

from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import TextParam, object_result
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.sql_queries import SqlQueries

QueryResult = Annotated[
    Any,
    object_result(
        "query result",
        "columns with names and types, rows, whether rows were left out, and the time in milliseconds",
        {
            "type": "object",
            "properties": {
                "columns": {"type": "array", "items": {"type": "object"}},
                "rows": {"type": "array", "items": {"type": "array"}},
                "truncated": {"type": "boolean"},
                "elapsedMs": {"type": "number"},
            },
        },
    ),
]
TablesResult = Annotated[
    list[dict[str, Any]],
    object_result("tables", "tables with their columns", {"type": "array", "items": {"type": "object"}}),
]


def _queries(ctx: RpcContext) -> SqlQueries:
    assert ctx.sql is not None
    return ctx.sql


@method("sql_query", needs={"sql"})
async def query(ctx: RpcContext, text: TextParam) -> QueryResult:
    """Executes one SELECT over the tables of the chain.

    Byte strings are hexadecimal text; numbers beyond 2^53 are decimal text. `truncated` is true if --rpc-sql-max-rows
    has cut off rows. --rpc-sql-timeout and --rpc-sql-max-memory bound a query.
    """
    return await _queries(ctx).query(text)


@method("sql_tables", needs={"sql"})
async def tables(ctx: RpcContext) -> TablesResult:
    """Returns the tables that `sql_query` can read, with names, types and descriptions of their columns."""
    return await _queries(ctx).tables()
