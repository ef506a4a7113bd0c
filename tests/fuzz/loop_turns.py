"""Runs a node that records the duration of its event loop iterations: python -m tests.fuzz.loop_turns FILE [arguments
of ophion]

The duration of an iteration is the processor time of the loop's thread, so interruptions by the system do not count. A
callback every millisecond measures the processor time since the previous callback. This is the time of one iteration or
of a few short ones. For each new maximum, a line is written to FILE: the seconds, and the stack of the thread when a
long iteration was detected. A timer on the thread's own CPU clock sends a signal that dumps the stack. So the stack
also shows code that holds the GIL. On a virtual machine, this clock includes stolen time, so the stolen time that the
system reports is subtracted.

The node itself is not changed.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import json
import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import uvloop

EVERY_S = 0.001
LONG_S = 0.03
"""Minimum duration in seconds of an event loop iteration that is examined."""
DEPTH = 8
STAT = Path("/proc/stat")
TICKS = os.sysconf("SC_CLK_TCK")
LOOK_EVERY = 32
"""Number of event loop iterations between two readings of the stolen time."""
THREAD_CPU_CLOCK = 3
TO_THREAD = 4
SIGNAL = signal.SIGPROF


class SignalEvent(ctypes.Structure):
    """`sigevent` of C: a signal to one thread."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("rest", ctypes.c_char * 44),
    )


class Interval(ctypes.Structure):
    """`itimerspec` of C: a timer that expires once."""

    _fields_ = (("every", ctypes.c_long * 2), ("after", ctypes.c_long * 2))


class Alarm:
    """Dumps the stack of this thread into a file, once the thread has used some processor time since `rearm`."""

    def __init__(self, path: Path, after_s: float) -> None:
        self._path = path
        self._file = path.open("w")
        faulthandler.register(SIGNAL, self._file, all_threads=False)
        self._libc = ctypes.CDLL(None, use_errno=True)
        event = SignalEvent(None, SIGNAL, TO_THREAD, threading.get_native_id(), b"")
        self._timer = ctypes.c_void_p()
        if self._libc.timer_create(THREAD_CPU_CLOCK, ctypes.byref(event), ctypes.byref(self._timer)):
            raise OSError(ctypes.get_errno(), "no clock of this thread")
        self._after = Interval((0, 0), (0, int(after_s * 1e9)))
        # disarm the timer at exit, because an unhandled signal would kill the process
        atexit.register(self._set, Interval())
        self.rearm()

    def rearm(self) -> None:
        self._set(self._after)

    def _set(self, after: Interval) -> None:
        self._libc.timer_settime(self._timer, 0, ctypes.byref(after), None)

    def seen(self) -> list[str]:
        """Return the stack that was dumped since the last call, innermost frame first."""
        text = self._path.read_text()
        self._file.seek(0)
        self._file.truncate()
        lines = [line.strip() for line in text.splitlines() if line.lstrip().startswith("File ")]
        return [line.removeprefix('File "').replace('", line ', ":") for line in lines[:DEPTH]]


def stolen_s() -> list[float]:
    """Return the stolen seconds of each processor of a virtual machine; empty if the system does not report stolen
    time.
    """
    lines = STAT.read_text().splitlines() if STAT.exists() else []
    return [int(line.split()[8]) / TICKS for line in lines if line.startswith("cpu") and line[3].isdigit()]


class Turns:
    """Measures the longest iteration of the event loop so far."""

    def __init__(self, path: Path, loop: Any) -> None:
        self._path = path
        self._loop = loop
        self._alarm = Alarm(path.with_name(path.name + ".look"), LONG_S)
        self._longest = 0.0
        self._count = 0
        self._stolen = stolen_s()
        self._began = time.thread_time()
        self._loop.call_later(EVERY_S, self._turned)

    def _turned(self) -> None:
        took = time.thread_time() - self._began
        self._count += 1
        if took > LONG_S or self._count % LOOK_EVERY == 0:
            before, self._stolen = self._stolen, stolen_s()
            if took > LONG_S:
                took -= max((now - then for now, then in zip(self._stolen, before, strict=True)), default=0.0)
        if took > LONG_S or took > self._longest:
            doing = self._alarm.seen() if took > LONG_S else []
            if took > self._longest:
                self._longest = took
                with self._path.open("a") as file:
                    file.write(json.dumps({"seconds": took, "doing": doing}) + "\n")
        self._loop.call_later(EVERY_S, self._turned)
        self._alarm.rearm()
        self._began = time.thread_time()  # start the measurement after this code, so that its own time does not count


def longest(path: Path) -> tuple[float, list[str]]:
    """Return the longest recorded iteration of the event loop and its stack."""
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines:
        return 0.0, []
    found = json.loads(lines[-1])
    return found["seconds"], found["doing"]


def main() -> None:
    path = Path(sys.argv[1])
    make = uvloop.new_event_loop

    def watched() -> Any:
        loop = make()
        loop.call_soon(lambda: Turns(path, loop))
        return loop

    uvloop.new_event_loop = watched
    sys.argv[1:] = sys.argv[2:]
    runpy.run_module("ophion", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
