"""Tests results of the GenesisTests runner for failing cases. test_outcome.py has the passing cases."""

from __future__ import annotations

from pathlib import Path

from ophion.vectors.genesis_test import run_file


def test_another_block_than_expected_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(
        '{"one": {"alloc": {}, "timestamp": "0x", "difficulty": "0x1", "gasLimit": "0x1388", "result": "c0"}}'
    )
    (outcome,) = run_file(path)
    assert outcome.passed is False
    assert outcome.detail.startswith("expected c0, got f9")
