"""A real node that measures how long its event loop is blocked. `metered_command` replaces the command `ophion`.

A timer of one millisecond runs in the loop. The loop was blocked for the time between two calls of the timer. Two times
are subtracted: when the thread was ready but had no processor, and when the hypervisor took the processor. The maximum
is in shared memory, where a test reads and resets it.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import runpy
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ophion.peers.service import PeerService

BEAT_S = 0.001
_STEAL_FIELD = 8
"""Index of the steal time in the first line of /proc/stat."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_FIGURE = struct.Struct("d")


@contextmanager
def meter_file() -> Iterator[Path]:
    """Give the path of a file in memory that another process can open.

    On disk, the kernel stops a process that writes to a mapped page while that page is written back. The event loop of
    the node would then wait for the disk because of its own meter, for up to 75 ms.
    """
    file = os.memfd_create("meter")
    try:
        yield Path(f"/proc/{os.getpid()}/fd/{file}")
    finally:
        os.close(file)


def metered_command(meter: Path) -> tuple[str, ...]:
    """Return the command that starts a metered node, to be used instead of `ophion`."""
    root = Path(__file__).parents[2]
    script = f"import sys; sys.path.insert(0, {str(root)!r}); import tests.abuse.metered_node as it; it.main()"
    meter.write_bytes(bytes(_FIGURE.size))
    return sys.executable, "-c", script, str(meter)


class Meter:
    """The maximum time for which the event loop was blocked, in shared memory. The test process also measures the
    memory of the node.
    """

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _FIGURE.size)

    def note(self, blocked_s: float) -> None:
        """Record a blocked time if it is the longest so far. The node's process calls this method."""
        if blocked_s > self._blocked_s():
            _FIGURE.pack_into(self._memory, 0, blocked_s)

    def begin(self, pid: int) -> Reading:
        """Reset the figures of a node. Returns the current memory of the node."""
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        _FIGURE.pack_into(self._memory, 0, 0.0)
        return Reading(0.0, _status_mb(pid, "VmRSS"))

    def end(self, pid: int, begun: Reading) -> Reading:
        """Return the longest blocked time since `begin`, and the peak growth of memory."""
        return Reading(self._blocked_s(), _status_mb(pid, "VmHWM") - begun.memory_mb)

    def _blocked_s(self) -> float:
        blocked_s: float = _FIGURE.unpack_from(self._memory)[0]
        return blocked_s


class Reading(NamedTuple):
    """Figures that a meter has recorded."""

    blocked_s: float
    memory_mb: float


def _status_mb(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


class _Beat:
    """Measures the event loop of the node, in the node's process."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._loop = asyncio.get_running_loop()
        self._schedule = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        self._processors = os.open("/proc/stat", os.O_RDONLY)
        self._last = self._now()
        self._loop.call_later(BEAT_S, self._beat)

    def _now(self) -> float:
        """Return a clock that stands still while the thread is ready but has no processor.

        A virtual machine's processor may be taken away for 50 ms and more. Linux counts this as steal time.
        """
        waited_ns = int(os.pread(self._schedule, 100, 0).split()[1])
        stolen_ticks = int(os.pread(self._processors, 200, 0).split()[_STEAL_FIELD])
        return time.perf_counter() - waited_ns / 1e9 - stolen_ticks / _TICKS_PER_S

    def _beat(self) -> None:
        now = self._now()
        self._meter.note(now - self._last - BEAT_S)
        self._last = now
        self._loop.call_later(BEAT_S, self._beat)


def main() -> None:
    """Run the command line with a meter."""
    meter = Meter(Path(sys.argv.pop(1)))
    run = PeerService.run

    async def metered(self: PeerService, ready: Callable[[], None]) -> None:
        _Beat(meter)
        await run(self, ready)

    PeerService.run = metered  # type: ignore[method-assign]
    sys.argv[0] = "ophion"
    runpy.run_module("ophion", None, "__main__")
