"""Queries of untrusted clients: one SELECT over the datasets is allowed, everything else is refused before it is
executed.
"""

from __future__ import annotations

from typing import Any

import pytest

from ophion.data.sql_guard import MAX_QUERY_CHARS, check_query
from ophion.errors import CommandError

duckdb = pytest.importorskip("duckdb", reason="the extra ophion[data] is not installed")

DATASETS = ("blocks", "transactions")


@pytest.fixture(scope="module")
def connection() -> Any:
    return duckdb.connect()


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from blocks",
        "select * from blocks b join transactions t using (block_number) where t.gas_used > 1 order by 1 limit 3",
        "with big as (select * from blocks where gas_used > 5) select * from big",
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 9) select sum(i) from n",
        "select (select max(block_number) from Blocks), range from range(3)",
        "select unnest([1, 2]), * from generate_series(1, 3)",
        "from blocks select block_number",
        "select sum(gas_used) over (partition by block_number) from transactions qualify row_number() over () < 3;",
        "values (1), (2)",
        "select * from blocks tablesample 10%",
        "select * from blocks using sample 3 rows",
        "select 1 union all select 2 except select 3",
        "select * from blocks using sample 3",
    ],
)
def test_a_select_over_datasets_is_allowed(connection: Any, text: str) -> None:
    check_query(connection, text, DATASETS)


@pytest.mark.parametrize(
    "text",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from read_text('/etc/passwd')",
        "select * from read_blob('/etc/*')",
        "select * from glob('/*')",
        "select * from '/etc/passwd'",
        "select * from 'x.parquet'",
        "select * from arrow_scan(1, 2, 3)",
        "select * from arrow_scan_dumb(1, 2, 3)",
        "select * from pandas_scan(1)",
        "select * from query('select 1')",
        "select * from query_table('blocks')",
        "select * from json_execute_serialized_sql('{}')",
        "select * from duckdb_settings()",
        "select * from duckdb_views",
        "select * from pragma_database_list",
        "select * from information_schema.tables",
        "select * from sqlite_master",
        "select * from other.blocks",
        "select * from unknown",
        "select current_setting('home_directory')",
        "select sleep_ms(10000)",
        "select getenv('HOME')",
        "with t as (select * from read_csv('/etc/passwd')) select * from t",
        "select (select content from read_text('/etc/passwd'))",
        "select * from blocks where exists (select 1 from glob('/*'))",
        "with duckdb_views as (select 1) select * from duckdb_views",
        'with "/etc/passwd" as (select 1) select * from "/etc/passwd"',
        "pivot (select block_number, gas_used from blocks) on block_number using sum(gas_used)",
        "copy blocks to '/tmp/x.csv'",
        "copy (select 1) to '/tmp/x.csv'",
        "attach '/tmp/x.db'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "pragma memory_limit = '1TB'",
        "create table x as select 1",
        "insert into blocks values (1)",
        "delete from blocks",
        "drop view blocks",
        "explain analyze select 1",
        "call pragma_version()",
        "export database '/tmp/x'",
        "prepare p as select 1",
        "execute p",
        "describe blocks",
        "show tables",
        "summarize blocks",
        "vacuum",
        "checkpoint",
        "begin",
        "select 1; select 2",
        "select 1; copy blocks to '/tmp/x.csv'",
        "",
        ";",
        "select",
        "not sql",
        "select '\0'",
        "select " + "1," * MAX_QUERY_CHARS + "1",
    ],
)
def test_everything_else_is_refused(connection: Any, text: str) -> None:
    with pytest.raises(CommandError):
        check_query(connection, text, DATASETS)


def test_deep_nesting_is_refused_or_parsed(connection: Any) -> None:
    text = "select " + "(" * 5000 + "1" + ")" * 5000
    with pytest.raises((CommandError, duckdb.Error)):
        check_query(connection, text, DATASETS)


@pytest.mark.parametrize(
    "text",
    [
        "select " + "1+" * 900 + "1",
        "select " + "[" * 900 + "1" + "]" * 900,
        "select " + "(select " * 400 + "1" + ")" * 400,
        "select " + "1+" * 9000 + "1",
    ],
)
def test_a_query_that_nests_too_deeply_is_refused(connection: Any, text: str) -> None:
    """The parser of JSON raises another error than DuckDB, which would end the SQL process."""
    with pytest.raises(CommandError):
        check_query(connection, text, DATASETS)
