"""Tests files of operators, and files named by mistake."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ophion.runtime import operator_files
from ophion.runtime.operator_files import MAX_BYTES, NotRegularFile, content_of, refuse_unusual, rewrite, table_of


def file_of(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "file"
    path.write_bytes(content)
    return path


def test_a_small_file_is_read(tmp_path: Path) -> None:
    assert content_of(file_of(tmp_path, b"x" * MAX_BYTES)) == b"x" * MAX_BYTES


def test_what_has_no_end_is_not_read_to_it() -> None:
    with pytest.raises(ValueError, match="more than 1048576 bytes"):
        content_of(Path("/dev/zero"))


def sparse(path: Path, size: int) -> Path:
    """Make a sparse file of this size."""
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_what_is_too_large_is_not_read_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    huge = sparse(tmp_path / "huge", 2**40)
    monkeypatch.setattr(os, "read", None)
    with pytest.raises(NotRegularFile, match="^more than 1048576 bytes$"):
        content_of(huge)
    with pytest.raises(NotRegularFile, match="^more than 1073741824 bytes$"):
        content_of(huge, 2**30)


def test_some_files_may_be_larger(tmp_path: Path) -> None:
    large = sparse(tmp_path / "large", 3 * MAX_BYTES)
    assert content_of(large, 3 * MAX_BYTES) == bytes(3 * MAX_BYTES)
    with pytest.raises(NotRegularFile, match="^more than 3145727 bytes$"):
        content_of(large, 3 * MAX_BYTES - 1)


def test_devices_may_not() -> None:
    with pytest.raises(NotRegularFile, match="more than 1048576 bytes"):
        content_of(Path("/dev/zero"), 2**40)
    assert content_of(Path("/dev/null")) == b""


def test_a_directory_is_what_the_system_says(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        content_of(tmp_path)


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(operator_files, "_PATIENCE_S", 0.0)
    with pytest.raises(NotRegularFile, match="a pipe that does not come to its end within 0 s"):
        content_of(tmp_path / "pipe")


def test_a_pipe_that_does_not_end_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    held = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(held, b"a = 1")
    monkeypatch.setattr(operator_files, "_PATIENCE_S", 0.0)
    with pytest.raises(NotRegularFile, match="a pipe that does not come to its end"):
        content_of(tmp_path / "pipe")
    os.close(held)


def test_a_pipe_with_a_writer_is_as_good_as_a_file(tmp_path: Path) -> None:
    """A shell passes a pipe for `--config-file=<(…)`, for example."""
    content = bytes(range(256)) * 2048  # the content is longer than the buffer of a pipe
    read_end, write_end = os.pipe()

    def write() -> None:
        with open(write_end, "wb") as file:
            file.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    assert content_of(Path(f"/dev/fd/{read_end}")) == content
    writer.join()
    os.close(read_end)


def test_what_others_read_by_name_must_be_a_plain_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(NotRegularFile, match="not a plain file"):
            refuse_unusual(path)
    with pytest.raises(NotRegularFile, match="more than 1048576 bytes"):
        refuse_unusual(sparse(tmp_path / "large", MAX_BYTES + 1))
    with pytest.raises(FileNotFoundError):
        refuse_unusual(tmp_path / "absent")
    refuse_unusual(file_of(tmp_path, b"x"))


def test_text_is_utf_8_whatever_the_locale_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    assert table_of(file_of(tmp_path, 'name = "Zoë"'.encode())) == {"name": "Zoë"}


LONG_KEYS = {
    "dotted": b".".join([b"a"] * 30_000) + b"=1",
    "spaced": b" . ".join([b"a"] * 30_000) + b"=1",
    "quoted": b".".join([b'"a"'] * 30_000) + b"=1",
    "escaped": b".".join([rb'"\""'] * 30_000) + b"=1",
    "literal": b".".join([b"'a'"] * 30_000) + b"=1",
    "header": b"[" + b".".join([b"a"] * 30_000) + b"]",
    "inline": b"x={" + b".".join([b"a"] * 30_000) + b"=1}",
}


@pytest.mark.parametrize("name", LONG_KEYS)
def test_keys_that_would_take_minutes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a key of more than 64 parts"):
        table_of(file_of(tmp_path, LONG_KEYS[name]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x = " + b"[" * 5000, "nested too deeply"),
        (b"x = \xff", "not UTF-8 text"),
        (b"x = " + b"1" * 5000, "4300 digits"),
        (b"x = ", "Invalid value"),
    ],
    ids=["nested", "not text", "huge number", "no value"],
)
def test_mistakes_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        table_of(file_of(tmp_path, content))


def test_long_values_and_many_keys_are_no_mistake(tmp_path: Path) -> None:
    peers = ", ".join(f'"enode://{"ab" * 64}@10.0.0.{number}:30303"' for number in range(200))
    lines = [f"bootnodes = [{peers}]", "a.b.c = 1", f'path = "{"x" * 100_000}"', *(f"k{n} = 1" for n in range(10_000))]
    found = table_of(file_of(tmp_path, "\n".join(lines).encode()))
    assert len(found["bootnodes"]) == 200
    assert len(found) == 10_003


KILLED_WHILE_WRITING = """
import os, pathlib, sys
from ophion.runtime.operator_files import rewrite
os.fsync = lambda descriptor: os.kill(os.getpid(), 9)
rewrite(pathlib.Path(sys.argv[1]), b"new")
"""


def test_a_process_that_is_killed_while_it_writes_leaves_the_old_file(tmp_path: Path) -> None:
    path = file_of(tmp_path, b"old")
    ran = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(path)], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


def test_a_rewritten_file_keeps_its_mode_and_its_links(tmp_path: Path) -> None:
    path, link = file_of(tmp_path, b"old"), tmp_path / "link"
    link.symlink_to(path)
    path.chmod(0o600)
    rewrite(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(tmp_path.iterdir()) == [path, link]


def test_a_file_that_cannot_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = file_of(tmp_path, b"old")
    monkeypatch.setattr(operator_files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        rewrite(path, b"new")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"old", [path])


def test_a_device_is_written_and_not_replaced() -> None:
    rewrite(Path(os.devnull), b"new")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
