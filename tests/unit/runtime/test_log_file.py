from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

import pytest

from ophion.errors import ConfigError
from ophion.runtime import log_file
from ophion.runtime.log_file import LogFile


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("ophion.test", logging.INFO, "", 0, text, (), None)


@pytest.fixture
def looks_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "_LOOKED_EVERY_S", 0.0)


def test_full_files_are_numbered_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "node.log"
    handler = LogFile(path, 10, 2)
    for text in ("first", "second", "third", "fourth"):
        handler.emit(record(text))
    handler.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["node.log", "node.log.1", "node.log.2"]
    assert path.read_text() == "fourth\n"
    assert path.with_name("node.log.1").read_text() == "third\n"
    assert path.with_name("node.log.2").read_text() == "second\n"


def test_a_file_that_is_there_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    path.write_text("before\n")
    handler = LogFile(path, 0, 3)
    handler.emit(record("after"))
    handler.close()
    assert path.read_text() == "before\nafter\n"


def test_without_kept_files_the_full_one_is_begun_anew(tmp_path: Path) -> None:
    handler = LogFile(tmp_path / "node.log", 10, 0)
    for text in ("first", "second"):
        handler.emit(record(text))
    handler.close()
    assert [file.read_text() for file in tmp_path.iterdir()] == ["second\n"]


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    LogFile(tmp_path / "node.log", 0, 0).close()
    assert stat.S_IMODE((tmp_path / "node.log").stat().st_mode) == 0o600


@pytest.mark.usefixtures("looks_always")
def test_a_moved_file_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    handler = LogFile(path, 0, 0)
    handler.emit(record("first"))
    path.rename(tmp_path / "moved")
    handler.emit(record("second"))
    path.unlink()
    handler.emit(record("third"))
    path.rename(tmp_path / "again")
    path.write_text("of somebody else\n")
    handler.emit(record("fourth"))
    handler.close()
    assert (tmp_path / "moved").read_text() == "first\n"
    assert (tmp_path / "again").read_text() == "third\n"
    assert path.read_text() == "of somebody else\nfourth\n"


@pytest.mark.usefixtures("looks_always")
def test_a_file_that_was_truncated_has_its_whole_size_again(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    handler = LogFile(path, 12, 1)
    handler.emit(record("12345678"))
    os.truncate(path, 0)
    handler.emit(record("abcdefgh"))
    handler.close()
    assert path.read_text() == "abcdefgh\n"
    assert not path.with_name("node.log.1").exists()


def test_lines_that_do_not_fit_on_the_disk_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    handler = LogFile(path, 0, 0)
    handler._file = open("/dev/full", "ab", buffering=0)  # noqa: SIM115  # the handler closes the file
    handler._looked = float("inf")
    handler.emit(record("lost"))
    path.unlink()
    path.mkdir()
    handler.emit(record("lost too"))
    path.rmdir()
    handler.emit(record("here"))
    handler.close()
    assert path.read_text() == "log lines were lost count=2\nhere\n"


def test_text_that_is_no_text_is_written_somehow(tmp_path: Path) -> None:
    handler = LogFile(tmp_path / "node.log", 0, 0)
    handler.emit(record("half \ud800 a pair"))
    handler.close()
    assert (tmp_path / "node.log").read_text() == "half \\ud800 a pair\n"


def test_an_unwritable_path_gives_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"The log file .*/file/node\.log cannot be written: "):
        LogFile(tmp_path / "file" / "node.log", 0, 0)
