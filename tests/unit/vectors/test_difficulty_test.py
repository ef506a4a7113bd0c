"""Tests results of the DifficultyTests runner for failing cases. test_outcome.py has the passing cases."""

from __future__ import annotations

from pathlib import Path

from ophion.vectors.difficulty_test import run_file


def test_a_wrong_difficulty_and_an_unknown_fork_have_different_errors(tmp_path: Path) -> None:
    case = (
        '{"currentBlockNumber": "0x01", "currentDifficulty": "0x01", "currentTimestamp": "0x01", '
        '"parentDifficulty": "0x020000", "parentTimestamp": "0x00", "parentUncles": "0x00"}'
    )
    path = tmp_path / "cases.json"
    path.write_text(f'{{"group": {{"_info": {{}}, "Frontier": {{"one": {case}}}, "Atlantis": {{"two": {case}}}}}}}')
    wrong, skipped = run_file(path)
    assert (wrong.passed, wrong.detail) == (False, "expected 1, got 131136")
    assert (skipped.passed, skipped.detail) == (None, "fork Atlantis is not supported")
