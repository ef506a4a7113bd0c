"""Returns freed memory to the system.

The C library has a heap per thread. After some thousand large requests, these heaps still hold most of the memory. The
interpreter holds free lists of tuples and floats, and whole arenas for single objects. When the process has grown, this
service clears the interpreter's lists while the loop is idle. It trims the C heaps in a thread, because trimming can
take long.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, thread_time
from typing import Final

from ophion.native.memory import give_back, keep_freed

_EVERY_S: Final = 2.0
_GROWN_BYTES: Final = 2 * 1024 * 1024
_KEPT_BYTES: Final = 32 * 1024 * 1024
"""Free memory that the C heap keeps: the size of a large reply. With a lower value, each large reply would request its
memory from the system again, and `eth_getLogs` would take twice as long.
"""
_CALM_SHARE: Final = 0.1
"""The loop counts as idle when it works for less than this share of the time."""
_COLLECTING_SHARE: Final = 0.005
"""Maximum share of the time that garbage collections may take."""
_STATUS: Final = Path("/proc/self/statm")


class MemoryTrimmer:
    """A service that checks the size of the process at intervals."""

    name = "memory"

    def __init__(self, every_s: float = _EVERY_S) -> None:
        self._every_s = every_s

    async def run(self, ready: Callable[[], None]) -> None:
        """Check the size of the process until cancelled."""
        ready()
        keep_freed(_KEPT_BYTES)
        # start the worker thread now: a later thread would place its heap between the heaps of requests
        await asyncio.to_thread(give_back)
        least = resident_bytes()
        rested_s = 0.0
        while True:
            worked_s = thread_time()
            await asyncio.sleep(self._every_s)
            rested_s += self._every_s
            if resident_bytes() > least + _GROWN_BYTES:
                if rested_s > 0 and thread_time() - worked_s < _CALM_SHARE * self._every_s:
                    rested_s = -collect() / _COLLECTING_SHARE
                await asyncio.to_thread(give_back)
            least = min(least, resident_bytes())


def collect() -> float:
    """Collect garbage and clear the interpreter's free lists; return the duration."""
    begun = perf_counter()
    gc.collect()
    return perf_counter() - begun


def resident_bytes() -> int:
    """Return the resident memory of the process in bytes; 0 if the system does not report it."""
    try:
        pages = int(_STATUS.read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
