"""Public GenesisTests, the sample of the repository and the whole set when it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.vectors.genesis_test import run_file
from tests.conftest import DATA, shared_files

FILES = [*sorted((DATA / "vectors" / "genesis").glob("*.json")), *shared_files("fixtures/ethereum-tests/GenesisTests")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_case_of_the_file_passes(path: Path) -> None:
    outcomes = run_file(path)
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.passed is False] == []


def test_a_file_that_is_no_vector_file_is_a_failure_and_no_exception(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text("[1, 2")
    (outcome,) = run_file(path)
    assert outcome.passed is False
    assert "not a readable JSON file" in outcome.detail


def test_another_block_than_expected_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(
        '{"one": {"alloc": {}, "timestamp": "0x", "difficulty": "0x1", "gasLimit": "0x1388", "result": "c0"}}'
    )
    (outcome,) = run_file(path)
    assert outcome.passed is False
    assert outcome.detail.startswith("expected c0, got f9")
