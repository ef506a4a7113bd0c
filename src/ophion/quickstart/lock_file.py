"""Who runs a network: a file that one process holds, with the processes and addresses it has made.

The lock is the system's and ends with its holder, however that ends; what stands in the file is for people and for the
other commands of the quickstart.
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


class Running(Struct, frozen=True):
    """What a held lock says."""

    pid: int
    address: str = ""
    """Of the proxy."""
    is_ready: bool = False
    """Whether every node has had a block of this run."""
    processes: dict[str, int] = field(default_factory=dict)
    """Process numbers by name; those that have ended are not there."""


class Lock:
    """The lock of one network, once it is held; a context manager."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, directory: Path) -> Lock | None:
        """Hold the lock of a directory that exists; None when somebody else does."""
        descriptor = os.open(directory / NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        for _ in range(_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if holder(directory) is not None:
                    os.close(descriptor)
                    return None
                time.sleep(_PAUSE_S)  # somebody only looks, which takes a lock for a moment too
        else:
            os.close(descriptor)
            return None
        lock = cls(descriptor)
        lock.write(Running(os.getpid()))
        return lock

    def write(self, running: Running) -> None:
        """Say what runs; whoever reads at the same moment sees the old text or the new one."""
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
        """Nobody holds it any longer."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder(directory: Path) -> Running | None:
    """Who runs the network in a directory; None when nobody does."""
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


def _read(data: bytes) -> Running:
    try:
        # what stands behind the first value is the end of an older, longer text
        found: Any
        found, _ = json.JSONDecoder().raw_decode(data.decode())
        processes = {str(name): int(pid) for name, pid in found["processes"].items()}
        return Running(int(found["pid"]), str(found["address"]), bool(found["ready"]), processes)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Running(0)
