"""Public RLPTests, the sample of the repository and the whole set when it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.vectors.rlp_test import run_file
from tests.conftest import DATA, shared_files

FILES = [*sorted((DATA / "vectors" / "rlp").glob("*.json")), *shared_files("fixtures/ethereum-tests/RLPTests")]


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


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ('{"in": "INVALID", "out": "0x80"}', "expected a refusal"),
        ('{"in": "VALID", "out": "0x8100"}', "expected a value"),
        ('{"in": "dog", "out": "0x80"}', "expected 80"),
        ('{"in": "dog"}', "malformed case"),
    ],
)
def test_a_difference_is_a_failure_with_its_reason(tmp_path: Path, case: str, problem: str) -> None:
    path = tmp_path / "cases.json"
    path.write_text(f'{{"one": {case}}}')
    (outcome,) = run_file(path)
    assert outcome.passed is False
    assert outcome.detail.startswith(problem)
