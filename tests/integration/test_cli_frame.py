"""Tests the command as a process: exit codes, streams, unusual environments."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ophion import __version__
from tests.integration.command import OPHION, environment, ophion


def test_version_and_help_come_on_standard_output() -> None:
    assert ophion("--version").succeeded().out.startswith(f"ophion/v{__version__}/")
    assert "Commands:" in ophion("--help").succeeded().out


def test_the_process_ends_after_its_threads_and_exit_functions() -> None:
    code = (
        "import atexit, threading, ophion.cli.main as cli\n"
        "from ophion.__main__ import program\n"
        "def run():\n"
        "    threading.Thread(target=lambda: (ends.wait(), print('thread'))).start()\n"
        "    threading.Timer(0.1, ends.set).start()\n"
        "    atexit.register(print, 'exit function')\n"
        "    print('command')\n"
        "    return 7\n"
        "ends, cli.main = threading.Event(), run\n"
        "program()"
    )
    done = subprocess.run([OPHION[0], "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "command\nthread\nexit function\n", "")


def test_a_mistake_goes_to_standard_error_with_the_usage() -> None:
    done = ophion("--data-pth=x", "blocks", "export").failed("did you mean --data-path?", "Usage: ophion blocks export")
    assert done.out == ""


def test_a_closed_pipe_is_no_disaster() -> None:
    done = subprocess.run(
        f"{OPHION[0]} -m ophion --help | head -c 10", shell=True, env=environment(), capture_output=True, check=False
    )
    assert done.stdout == b"Usage: oph"
    assert done.stderr == b""


def test_a_narrow_locale_is_no_disaster() -> None:
    for command in (["--help"], ["evm", "state-test"]):
        done = ophion(*command, env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
        assert "Traceback" not in done.err
        assert "Internal error" not in done.err


def test_debug_logging_shows_where_an_error_came_from() -> None:
    done = ophion("--logging=DEBUG", "rlp", "encode", "--from=/nonexistent")
    assert done.code == 1
    assert "Traceback" in done.err
    assert "Unable to read JSON file." in done.err


def test_the_data_path_may_come_from_the_environment(tmp_path: Path) -> None:
    ophion("public-key", "export", env={"OPHION_DATA_PATH": str(tmp_path / "data")}).succeeded()
    assert (tmp_path / "data" / "key").exists()


@pytest.mark.parametrize("word", ["blocks", "evm", "operator", "password", "public-key", "rlp", "storage"])
def test_a_family_alone_shows_its_commands(word: str) -> None:
    assert ophion(word).succeeded().out.startswith(f"Usage: ophion {word} COMMAND [OPTIONS]")
