"""Tests the coverage of Solidity source by transactions and calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion import Chain, Reverted
from ophion.abi.artifact import Artifact
from ophion.sdk.coverage import Coverage
from tests.unit.sdk.contracts import FOLDER, TOKEN

SOURCE = (FOLDER / "Token.sol").read_text().splitlines()


def _line(text: str) -> int:
    return next(number for number, line in enumerate(SOURCE, 1) if text in line)


def test_lines_and_branches_of_a_contract(tmp_path: Path) -> None:
    with Chain() as chain:
        chain.coverage = coverage = Coverage([(Artifact.of(TOKEN), TOKEN)], FOLDER)
        token = chain.deploy(TOKEN, "Coin", 1000)
        bob = chain.accounts[1]
        (contract,) = coverage.contracts
        condition = _line("if (balanceOf[from] < value)")
        assert contract.line_hits()[condition] is False
        token.transfer(bob, 5)
        assert contract.line_hits()[condition] is True
        assert condition in contract.missing_branches()
        assert contract.line_hits()[_line("revert InsufficientBalance(")] is False
        with pytest.raises(Reverted):
            token.transfer(bob, 10**9)
        assert condition not in contract.missing_branches()
        assert contract.line_hits()[_line("revert InsufficientBalance(")] is True
        assert "Token.sol:Token" in coverage.text()
        coverage.write_lcov(tmp_path / "lcov.info")
        assert f"DA:{condition},1" in (tmp_path / "lcov.info").read_text()
        other = Coverage([(Artifact.of(TOKEN), TOKEN)], FOLDER)
        other.merge(coverage.as_json())
        assert other.text() == coverage.text()
