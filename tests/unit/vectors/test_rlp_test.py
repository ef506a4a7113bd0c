"""Tests results of the RLPTests runner for failing cases. test_outcome.py has the passing cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.vectors.rlp_test import run_file


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
