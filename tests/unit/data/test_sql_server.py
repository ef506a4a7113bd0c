"""Tests the JSON form of the values in a query's answer."""

from __future__ import annotations

from decimal import Decimal

from ophion.data.sql_server import TABLES, shown


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
