"""`BlockPriority`: requests wait while the node's own block is on the event loop.

Between its due time and its announcement a block returns to the loop about a dozen times: from a lane, into consensus,
to the next lane. Under thousands of transactions a second, reading the sockets alone delays each step by milliseconds.
Code that serves clients checks `is_on` and defers what has arrived. It waits only while the block is on the loop, not
while a lane works on it.

The lane that finishes a stage of the block turns the priority on; the next stage turns it off. It expires by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

MAX_PRIORITY_S: Final = 0.01
"""Upper limit of one period, whatever happens to the block."""


class BlockPriority:
    """Priority on one event loop. Any thread may turn it on or off: it is one number."""

    __slots__ = ("_longest_s", "_until", "begun")

    def __init__(self, longest_s: float = MAX_PRIORITY_S) -> None:
        self._longest_s = longest_s
        self._until = 0.0
        self.begun: Callable[[], None] = _ignore
        """Called in the thread that turns it on, for listeners that do not poll."""

    def begin(self) -> None:
        """Turn the priority on."""
        self._until = perf_counter() + self._longest_s
        self.begun()

    def end(self) -> None:
        """Turn it off."""
        self._until = 0.0

    @property
    def is_on(self) -> bool:
        """Whether deferrable work should wait."""
        return self._until > 0.0 and perf_counter() < self._until


def _ignore() -> None:
    """Ignore the start of a priority period."""
