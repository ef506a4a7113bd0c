"""When Python's cycle collector runs: not during start, seldom afterwards.

Nearly all objects of a start live as long as the process. Scanning them repeatedly took a tenth of the start time.
"""

from __future__ import annotations

import gc
from typing import Final

_STARTING: Final = 500_000
"""Above the allocations of any start; a long command is still collected."""
_RUNNING: Final = (50_000, 20, 100)


def while_starting() -> None:
    """Defer collection during start."""
    gc.set_threshold(_STARTING)


def settle_down() -> None:
    """Freeze existing objects: no collection scans them again."""
    gc.freeze()
    gc.set_threshold(*_RUNNING)
