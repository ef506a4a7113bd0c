"""Tests the gas report and its file."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from ophion import Chain
from ophion.sdk import gas_report
from ophion.sdk.gas_report import GasReport, GasReportError
from tests.unit.sdk.contracts import TOKEN


def test_examples() -> None:
    assert doctest.testmod(gas_report).failed == 0


def test_a_chain_fills_it(tmp_path: Path) -> None:
    with Chain() as chain:
        chain.gas_report = report = GasReport()
        token = chain.deploy(TOKEN, "Coin", 5)
        used = token.transfer(chain.accounts[1], 1).gas_used
    assert set(report.uses) == {"Token.constructor", "Token.transfer"}
    assert report.uses["Token.transfer"].max == used
    path = tmp_path / "gas.json"
    assert report.differences(path) == []
    report.write(path)
    assert report.differences(path) == []
    report.add("Token", "transfer", used + 100)
    assert report.differences(path) == [f"Token.transfer: {used} -> {used + 50} (+50)"]
    path.write_text("[]")
    with pytest.raises(GasReportError, match="Delete it"):
        report.differences(path)
