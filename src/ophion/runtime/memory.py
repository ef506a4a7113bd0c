"""Memory that is not needed any more, given back to the system.

Two keep what was freed for the next who asks. The C library keeps a heap for each thread, which after some thousand
large requests is most of what they took; the interpreter keeps lists of free tuples, floats and the like, and whole
megabytes because one of them lies there. Now and then both are asked to give it back when the process is larger than it
has been: the second on the loop, when that has little else to do, the first in a thread, since it may take long.
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
"""As much as one large answer: with less, every answer of some megabytes gets all its pages anew from the system, which
costs more than making it (`eth_getLogs` took twice as long)."""
_CALM_SHARE: Final = 0.1
"""Of its time the loop is at work for less than this when it has little to do."""
_COLLECTING_SHARE: Final = 0.005
"""Of its time that may go into looking for what nobody needs."""
_STATUS: Final = Path("/proc/self/statm")


class Trimming:
    """A service that looks at the size of the process now and then."""

    name = "memory"

    def __init__(self, every_s: float = _EVERY_S) -> None:
        self._every_s = every_s

    async def run(self, ready: Callable[[], None]) -> None:
        """Look until cancelled."""
        ready()
        keep_freed(_KEPT_BYTES)
        # makes the thread too, which would otherwise lie in the midst of what a crowd leaves behind
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
    """Let go of what nobody can reach, and of the interpreter's lists of free objects; how long it took."""
    begun = perf_counter()
    gc.collect()
    return perf_counter() - begun


def resident_bytes() -> int:
    """What the process occupies; 0 where the system does not say."""
    try:
        pages = int(_STATUS.read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
