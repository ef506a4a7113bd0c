"""Controls Python's garbage collector: off during start, rare afterwards.

Nearly all objects created during start live as long as the process. Scanning them repeatedly took a tenth of the start
time.
"""

from __future__ import annotations

import gc
from typing import Final

_STARTING: Final = 500_000
"""Collection threshold during start. A start creates fewer objects, but a long command creates more."""
_RUNNING: Final = (50_000, 20, 100)


def while_starting() -> None:
    """Defer garbage collection during start."""
    gc.set_threshold(_STARTING)


def settle_down() -> None:
    """Exclude all existing objects from further collections."""
    gc.freeze()
    gc.set_threshold(*_RUNNING)
