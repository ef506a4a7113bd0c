"""Tests results of the TrieTests runner for failing cases. test_outcome.py has the passing cases."""

from __future__ import annotations

from pathlib import Path

from ophion.vectors.trie_test import run_file


def test_a_wrong_root_shows_both_roots(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text('{"one": {"in": {"a": "b"}, "root": "0x00"}}')
    (outcome,) = run_file(path)
    assert outcome.passed is False
    assert outcome.detail.startswith("expected 00, got ")
