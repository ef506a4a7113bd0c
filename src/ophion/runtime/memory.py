"""Memory that is not needed any more, given back to the system.

The allocator keeps what was freed for the next who asks, which after some thousand large requests is most of what they
took. Now and then it is told to give it back when the process is larger than it has been, in a thread of its own, since
that takes some milliseconds. Only glibc knows how; elsewhere nothing happens.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

_EVERY_S: Final = 4.0
_GROWN_BYTES: Final = 2 * 1024 * 1024
_KEPT_BYTES: Final = 32 * 1024 * 1024
"""As much as one large answer: with less, every answer of some megabytes gets all its pages anew from the system, which
costs more than making it (`eth_getLogs` took twice as long)."""
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_STATUS: Final = Path("/proc/self/statm")


class Trimming:
    """A service that looks at the size of the process now and then."""

    name = "memory"

    async def run(self, ready: Callable[[], None]) -> None:
        """Look until cancelled."""
        ready()
        await asyncio.to_thread(keep_little)
        least = resident_bytes()
        while True:
            await asyncio.sleep(_EVERY_S)
            if resident_bytes() > least + _GROWN_BYTES:
                await asyncio.to_thread(give_back)
            least = min(least, resident_bytes())


def keep_little() -> None:
    """Let each thread keep what a large answer takes, and not more; what is larger goes back at once."""
    import ctypes

    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        tune(_M_MMAP_THRESHOLD, _KEPT_BYTES)


def give_back() -> None:
    """Return to the system what nobody uses."""
    import ctypes  # not before it is needed: loading it takes milliseconds

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def resident_bytes() -> int:
    """What the process occupies; 0 where the system does not say."""
    try:
        pages = int(_STATUS.read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
