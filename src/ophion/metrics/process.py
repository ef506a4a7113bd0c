"""Process and interpreter metrics, under the names that dashboards use."""

from __future__ import annotations

import gc
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

from ophion.runtime.clock import Clock
from ophion.runtime.metric_category import Category
from ophion.runtime.metrics_registry import MetricsRegistry

_PAGE_BYTES: Final = resource.getpagesize()
_STATM: Final = Path("/proc/self/statm")
_FILES: Final = Path("/proc/self/fd")
_STAT: Final = Path("/proc/self/stat")
_STAT_START: Final = 19
"""Index of the process start time among the fields of /proc/PID/stat after the program name."""


class GarbageCollectionTime:
    """Time and number of garbage collections, measured with `gc.callbacks`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.runs = 0
        self._began = 0.0

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._began = perf_counter()
        else:
            self.seconds += perf_counter() - self._began
            self.runs += 1


def declare_process(registry: MetricsRegistry, clock: Clock) -> Callable[[], None]:
    """Declare `process_*`, `python_*` and `jvm_*`. The caller must call the returned function when the node stops."""
    started = clock.now() - age_s()
    process, python, jvm = Category.PROCESS, Category.PYTHON, Category.JVM
    registry.counter(process, "cpu_seconds_total", "CPU time used, in seconds.").watch(process_time)
    registry.gauge(process, "start_time_seconds", "Start time of the process, in seconds since 1970.").watch(
        lambda: started
    )
    registry.gauge(process, "resident_memory_bytes", "Resident memory in bytes.").watch(resident_bytes)
    registry.gauge(process, "virtual_memory_bytes", "Mapped memory in bytes, including the database.").watch(
        virtual_bytes
    )
    registry.gauge(process, "open_fds", "Open files and sockets.").watch(open_files)
    registry.gauge(process, "max_fds", "Maximum number of open files and sockets.").watch(
        lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    )
    registry.gauge(python, "info", "Version of the Python interpreter.", "implementation", "version").watch(
        lambda: 1, platform.python_implementation(), platform.python_version()
    )
    collections = registry.counter(python, "gc_collections_total", "Runs of the garbage collector.", "generation")
    for generation in range(3):
        collections.watch(partial(_collections, generation), str(generation))
    collector = GarbageCollectionTime()
    gc.callbacks.append(collector)
    # Besu dashboards expect these memory areas of the Java virtual machine
    memory = registry.gauge(jvm, "memory_bytes_used", "Resident memory, where Besu shows its heap.", "area")
    memory.watch(resident_bytes, "heap")
    memory.watch(lambda: 0, "nonheap")
    seconds = registry.counter(jvm, "gc_collection_seconds_sum", "Seconds in the garbage collector.", "gc")
    seconds.watch(lambda: collector.seconds, "python")
    runs = registry.counter(jvm, "gc_collection_seconds_count", "Runs of the garbage collector.", "gc")
    runs.watch(lambda: collector.runs, "python")
    return lambda: gc.callbacks.remove(collector)


def _collections(generation: int) -> int:
    count: int = gc.get_stats()[generation]["collections"]
    return count


def age_s() -> float:
    """Return the seconds since the start of the process. If the system does not report the start, return the
    CPU time.
    """
    try:
        # the program name may contain spaces and parentheses, so the other fields start after the last parenthesis
        fields = _STAT.read_bytes().rpartition(b")")[2].split()
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[_STAT_START]) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):
        return process_time()


def resident_bytes() -> int:
    """Return resident memory in bytes. On systems without /proc, return the maximum so far."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def virtual_bytes() -> int:
    """Return mapped memory in bytes, or 0 if the system does not report it."""
    try:
        return int(_STATM.read_bytes().split()[0]) * _PAGE_BYTES
    except OSError:
        return 0


def open_files() -> int:
    """Return the number of open files and sockets, or 0 if the system does not report it."""
    try:
        return len(os.listdir(_FILES))
    except OSError:
        return 0
