"""Tests the lock of a network."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

from ophion.quickstart.lock_file import NAME, NetworkLock, RunningNetwork, holder


def test_one_holds_it_and_others_see_who(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    lock = NetworkLock.take(tmp_path)
    assert lock is not None
    with lock:
        assert NetworkLock.take(tmp_path) is None
        assert holder(tmp_path) == RunningNetwork(os.getpid())
        long = RunningNetwork(
            os.getpid(), "127.0.0.1:8080", True, {f"validator{number}": number for number in range(9)}
        )
        lock.write(long)
        assert holder(tmp_path) == long
        short = RunningNetwork(os.getpid(), "a:1")
        lock.write(short)
        assert holder(tmp_path) == short
    assert holder(tmp_path) is None


def test_a_text_that_is_none_of_ours_does_no_harm(tmp_path: Path) -> None:
    with NetworkLock.take(tmp_path) as lock:  # type: ignore[union-attr]
        assert lock is not None
        (tmp_path / "lock").write_text("what?")
        assert holder(tmp_path) == RunningNetwork(0)


def test_a_reader_does_not_block_the_lock(tmp_path: Path) -> None:
    """Regression: the start of a detached network was sometimes refused, because the waiting command was reading the
    lock at that moment.
    """
    (tmp_path / NAME).touch()
    looking = os.open(tmp_path / NAME, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.05, os.close, (looking,)).start()
    lock = NetworkLock.take(tmp_path)
    assert lock is not None
    assert NetworkLock.take(tmp_path) is None
    lock.release()
