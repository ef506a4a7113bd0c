"""Reading vector files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.errors import DecodeError
from ophion.vectors.outcome import load_cases


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\xff"])
def test_anything_but_an_object_of_cases_is_one_clear_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DecodeError, match=r"file\.json"):
        load_cases(path)


def test_a_missing_file_is_the_same_kind_of_error(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match="not a readable JSON file"):
        load_cases(tmp_path / "nothing.json")
