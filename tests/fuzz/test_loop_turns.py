"""Tests that loop_turns.py does not change the measured process, not even at its exit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

ENDS = """
import atexit, sys, time
from pathlib import Path
from tests.fuzz.loop_turns import Alarm

path = Path(sys.argv[1])

def end():
    while time.thread_time() - began < 0.2:
        pass
    print(path.read_text(), end="")

atexit.register(end)
alarm, began = Alarm(path, 0.05), time.thread_time()
"""


def test_the_measuring_signal_does_not_kill_an_ending_process(tmp_path: Path) -> None:
    """The measuring signal does not kill a process that exits after the interpreter has removed the signal handler."""
    command = [sys.executable, "-c", ENDS, str(tmp_path / "look")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
