"""Temporary directories are removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ophion.runtime.temporary_directory import temporary_directory


def test_it_is_where_it_is_wanted_and_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with temporary_directory("ophion-") as one, temporary_directory("ophion-") as other:
        assert one.parent == other.parent == tmp_path
        assert one != other
        assert one.name.startswith("ophion-")
        assert one.stat().st_mode & 0o777 == 0o700
        (one / "sub").mkdir()
        (one / "sub" / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_it_is_gone_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(ZeroDivisionError), temporary_directory("x"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere/at/all")
    with pytest.raises(FileNotFoundError, match="/nowhere/at/all/x"), temporary_directory("x"):
        pass


def test_by_default_the_system_folder_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    with temporary_directory("ophion-test-") as path:
        assert os.path.isabs(path)
        assert path.parent == Path("/tmp")
