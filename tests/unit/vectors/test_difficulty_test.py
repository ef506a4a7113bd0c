"""Public DifficultyTests, the sample of the repository and the whole set when it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.vectors.difficulty_test import run_file
from tests.conftest import DATA, shared_files

FILES = [
    *sorted((DATA / "vectors" / "difficulty").glob("*.json")),
    *shared_files("fixtures/ethereum-tests/DifficultyTests"),
]


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


def test_a_wrong_difficulty_and_an_unknown_fork_are_told_apart(tmp_path: Path) -> None:
    case = (
        '{"currentBlockNumber": "0x01", "currentDifficulty": "0x01", "currentTimestamp": "0x01", '
        '"parentDifficulty": "0x020000", "parentTimestamp": "0x00", "parentUncles": "0x00"}'
    )
    path = tmp_path / "cases.json"
    path.write_text(f'{{"group": {{"_info": {{}}, "Frontier": {{"one": {case}}}, "Atlantis": {{"two": {case}}}}}}}')
    wrong, skipped = run_file(path)
    assert (wrong.passed, wrong.detail) == (False, "expected 1, got 131136")
    assert (skipped.passed, skipped.detail) == (None, "fork Atlantis is not supported")
