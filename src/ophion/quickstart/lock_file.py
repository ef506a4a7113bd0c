"""The lock of a network: a file that the supervisor holds, with the processes and addresses of the network.

The kernel releases the lock when its holder ends. Other quickstart commands read the content.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from msgspec import Struct, field

NAME: Final = "lock"
_TRIES: Final = 200
_PAUSE_S: Final = 0.005


class RunningNetwork(Struct, frozen=True):
    """The content of the lock file while the network is running."""

    pid: int
    address: str = ""
    """Address of the proxy."""
    is_ready: bool = False
    """Whether every node has produced or received a block in this run."""
    processes: dict[str, int] = field(default_factory=dict)
    """Process ids of running processes by name."""


class NetworkLock:
    """The held lock of a network. A context manager."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, directory: Path) -> NetworkLock | None:
        """Take the lock of an existing directory. Returns None if another process holds the lock."""
        descriptor = os.open(directory / NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        for _ in range(_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if holder(directory) is not None:
                    os.close(descriptor)
                    return None
                time.sleep(_PAUSE_S)  # retry, because a reader also holds the lock for a moment
        else:
            os.close(descriptor)
            return None
        lock = cls(descriptor)
        lock.write(RunningNetwork(os.getpid()))
        return lock

    def write(self, running: RunningNetwork) -> None:
        """Write the content. A concurrent reader sees either the old or the new text."""
        text = {
            "pid": running.pid,
            "address": running.address,
            "ready": running.is_ready,
            "processes": running.processes,
        }
        data = json.dumps(text).encode() + b"\n"
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))

    def release(self) -> None:
        """Release the lock."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)

    def __enter__(self) -> NetworkLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder(directory: Path) -> RunningNetwork | None:
    """Return the content of the lock, or None if the network is not running."""
    try:
        descriptor = os.open(directory / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return _read(os.pread(descriptor, 64 * 1024, 0))
    finally:
        os.close(descriptor)


def _read(data: bytes) -> RunningNetwork:
    try:
        # ignore bytes after the JSON value, because they may remain from an earlier, longer text
        found: Any
        found, _ = json.JSONDecoder().raw_decode(data.decode())
        processes = {str(name): int(pid) for name, pid in found["processes"].items()}
        return RunningNetwork(int(found["pid"]), str(found["address"]), bool(found["ready"]), processes)
    except (ValueError, KeyError, TypeError, AttributeError):
        return RunningNetwork(0)
