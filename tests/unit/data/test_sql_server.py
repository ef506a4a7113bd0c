"""Tests the JSON form of the values in a query's answer."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from ophion.data.datasets import ALL
from ophion.data.sql_server import TABLES, SqlServer, shown


def test_values_keep_their_precision_in_json() -> None:
    assert shown(2**53 - 1) == 2**53 - 1
    assert shown(-(2**60)) == str(-(2**60))
    assert shown(b"\x01\xab") == "0x01ab"
    assert shown(Decimal("1e20")) == "100000000000000000000"
    assert shown(None) is None
    assert shown(True) is True
    assert shown([1, b"\x02"]) == [1, "0x02"]


def test_private_transactions_are_no_table() -> None:
    assert "private_transactions" not in [dataset.name for dataset in TABLES]


@pytest.fixture(scope="module")
def server() -> SqlServer:
    pytest.importorskip("duckdb", reason="the extra ophion[data] is not installed")
    pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")

    from ophion.data.arrow import arrow_schema

    class Schemas:
        """Stands for a chain. The queries read no rows."""

        def dataset(self, name: str, **_: Any) -> Any:
            return SimpleNamespace(schema=arrow_schema(ALL[name], ALL[name].columns, False))

    chain: Any = Schemas()
    return SqlServer(chain, 10, 64)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("select to_timestamp(1700000000) t", [["2023-11-14 22:13:20+00"]]),
        ('select 7 "a""b", to_timestamp(0) "a""b", 2::hugeint', [[7, "1970-01-01 00:00:00+00", 2]]),
        ("select [to_timestamp(0)]; -- a remark", [["['1970-01-01 00:00:00+00']"]]),
        (
            "select to_timestamp(x) from (values (2), (1)) t(x) order by x",
            [[f"1970-01-01 00:00:0{x}+00"] for x in (1, 2)],
        ),
        ("values (1), (2)", [[1], [2]]),
        ("from range(2)", [[0], [1]]),
        ("select 0.1::decimal(3, 1), 'x'", [["0.1", "x"]]),
    ],
)
def test_values_of_every_type_are_answered(server: SqlServer, text: str, rows: list[Any]) -> None:
    """DuckDB converts times with a time zone only with the package pytz."""
    assert server.answer(text).get("rows") == rows, server.answer(text)
