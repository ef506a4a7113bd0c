"""Reads vector files, and runs the public vectors: the sample in the repository, and the whole set if present."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ophion.errors import DecodeError
from ophion.vectors import difficulty_test, genesis_test, rlp_test, trie_test
from ophion.vectors.outcome import Outcome, load_cases
from tests.conftest import DATA, shared_files

RUNNERS: dict[str, tuple[Callable[[Path], list[Outcome]], str]] = {
    "difficulty": (difficulty_test.run_file, "DifficultyTests"),
    "genesis": (genesis_test.run_file, "GenesisTests"),
    "rlp": (rlp_test.run_file, "RLPTests"),
    "trie": (trie_test.run_file, "TrieTests"),
}
FILES = [
    pytest.param(run_file, path, id=f"{kind}-{path.stem}")
    for kind, (run_file, folder) in RUNNERS.items()
    for path in (
        *sorted((DATA / "vectors" / kind).glob("*.json")),
        *shared_files(f"fixtures/ethereum-tests/{folder}"),
    )
]


@pytest.mark.parametrize(("run_file", "path"), FILES)
def test_every_case_of_the_file_passes(run_file: Callable[[Path], list[Outcome]], path: Path) -> None:
    outcomes = run_file(path)
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.passed is False] == []


@pytest.mark.parametrize("kind", RUNNERS)
def test_a_file_that_is_no_vector_file_is_a_failure_and_no_exception(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text("[1, 2")
    (outcome,) = RUNNERS[kind][0](path)
    assert outcome.passed is False
    assert "not a readable JSON file" in outcome.detail


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\xff"])
def test_anything_but_an_object_of_cases_is_one_clear_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DecodeError, match=r"file\.json"):
        load_cases(path)


def test_a_missing_file_is_the_same_kind_of_error(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match="not a readable JSON file"):
        load_cases(tmp_path / "nothing.json")
