"""When Python looks for cycles that nobody uses: not while a process starts, and seldom afterwards.

Nearly everything that a start makes lives as long as the process: looking at it again and again for the few hundred
objects that do not took a tenth of the time in which a node starts.
"""

from __future__ import annotations

import gc
from typing import Final

_STARTING: Final = 500_000
"""More than any start makes; a command that goes on for long is still looked after."""
_RUNNING: Final = (50_000, 20, 100)


def while_starting() -> None:
    """Let the process start first."""
    gc.set_threshold(_STARTING)


def settle_down() -> None:
    """What has been made so far lives as long as the process: no collection needs to look at it again."""
    gc.freeze()
    gc.set_threshold(*_RUNNING)
