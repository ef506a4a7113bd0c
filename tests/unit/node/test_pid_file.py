"""Tests the file with the process id."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ophion.node.pid_file import remove_pid_file, write_pid_file


def test_the_file_has_the_process_id_and_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    path.write_text("a longer text of a process before")
    write_pid_file(path)
    assert path.read_text() == str(os.getpid())
    remove_pid_file(path)
    remove_pid_file(path)
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_another_process_stays(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    path.write_text("1234567")
    remove_pid_file(path)
    assert path.read_text() == "1234567"


def test_without_a_path_nothing_happens() -> None:
    write_pid_file(None)
    remove_pid_file(None)


def test_a_file_that_cannot_be_written_is_an_error_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    (tmp_path / "pid").symlink_to(precious)
    for path in (tmp_path / "missing" / "pid", tmp_path / "pid"):
        write_pid_file(path)
        assert f"pid file not written path={path}" in caplog.text
    assert precious.read_text() == "keep me"
