"""Tests processes, and when they count as ended."""

from __future__ import annotations

import platform
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ophion.testing.node_process import MINING, NodeProcess, is_alive
from ophion.testing.wait_for import wait_for

HALF_DEAD = """
import ctypes, platform, socket, threading, time
one = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=time.sleep, args=(30,)).start()
print(one.getsockname()[1], flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""
"""Code whose first thread ends before the others, as in a killed process."""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="a system call by its number"
)
def test_a_process_lives_as_long_as_one_of_its_threads() -> None:
    process = subprocess.Popen([sys.executable, "-c", HALF_DEAD], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        stat = Path(f"/proc/{process.pid}/stat")
        wait_for(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", 10, "its first thread ends")
        assert is_alive(process.pid)
        socket.create_connection(("127.0.0.1", port)).close()
        process.kill()
        wait_for(lambda: not is_alive(process.pid), 10, "all of it ends")
        with socket.socket() as one:
            assert one.connect_ex(("127.0.0.1", port)) != 0
    finally:
        process.kill()
        process.wait(10)
    assert not is_alive(process.pid)


def test_a_node_that_does_not_start_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ophion.testing.node_process._START_LIMIT_S", 0.0)
    node = NodeProcess(tmp_path / "data", *MINING, launcher=(sys.executable, "-c", "import time; time.sleep(60)"))
    with pytest.raises(AssertionError, match="did not start"):
        node.start()
    assert not node.is_running
