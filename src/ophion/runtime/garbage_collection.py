"""Controls Python's garbage collector: off during start, rare afterwards.

Nearly all objects created during start live as long as the process. Scanning them repeatedly took a tenth of the start
time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_STARTING: Final = 500_000
"""Collection threshold during start. A start creates fewer objects, but a long command creates more."""
_RUNNING: Final = (50_000, 20, 100)


def while_starting() -> None:
    """Defer garbage collection during start."""
    gc.set_threshold(_STARTING)


@contextmanager
def paused() -> Iterator[None]:
    """Defer garbage collection while modules are imported, and restore the caller's setting afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def settle_down() -> None:
    """Exclude all existing objects from further collections."""
    gc.freeze()
    gc.set_threshold(*_RUNNING)
