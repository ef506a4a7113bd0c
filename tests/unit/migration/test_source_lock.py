"""The source lock detects locks of RocksDB and Pebble (fcntl) and of LevelDB (flock)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ophion.errors import CommandError
from ophion.migration.source_lock import SourceLock

_HOLD = (
    "import fcntl, sys\n"
    "file = open(sys.argv[1], 'r+')\n"
    "getattr(fcntl, sys.argv[2])(file, fcntl.LOCK_EX)\n"
    "print('locked', flush=True)\n"
    "sys.stdin.read()\n"
)


@pytest.mark.parametrize("kind", ["flock", "lockf"])
def test_a_lock_of_another_process_is_found(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "LOCK"
    file.touch()
    command = [sys.executable, "-c", _HOLD, str(file), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(CommandError, match="geth is using its database"):
            SourceLock(file, "geth")
        process.communicate()
    SourceLock(file, "geth").close()


def test_the_client_cannot_start_while_the_lock_is_held(tmp_path: Path) -> None:
    file = tmp_path / "LOCK"
    file.touch()
    lock = SourceLock(file, "Besu")
    script = "import fcntl, sys\nfcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    assert b"BlockingIOError" in subprocess.run([sys.executable, "-c", script, file], capture_output=True).stderr
    lock.close()
    assert subprocess.run([sys.executable, "-c", script, file], capture_output=True).returncode == 0


def test_a_missing_lock_file_is_an_unused_database(tmp_path: Path) -> None:
    SourceLock(tmp_path / "LOCK", "Besu").close()
    assert list(tmp_path.iterdir()) == []
