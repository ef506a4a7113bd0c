"""`BlockPriority`: lets requests wait while the event loop works on the node's own block.

Between its due time and its announcement, a block needs the event loop about a dozen times, because work in worker
threads (lanes) alternates with steps of consensus. With thousands of transactions a second, socket reads alone delay
each of these steps by milliseconds. So code that serves clients checks `is_on` and defers new input. The deferral lasts
only while the event loop works on the block, not while a lane works on it.

The lane that finishes a stage of the block turns the priority on; the next stage turns it off. A priority that is not
turned off expires.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

MAX_PRIORITY_S: Final = 0.01
"""Maximum seconds of one priority period, even if the block takes longer."""


class BlockPriority:
    """Priority of block work on one event loop. Thread-safe, because the state is a single number."""

    __slots__ = ("_longest_s", "_until", "begun")

    def __init__(self, longest_s: float = MAX_PRIORITY_S) -> None:
        self._longest_s = longest_s
        self._until = 0.0
        self.begun: Callable[[], None] = _ignore
        """Called in the thread that turns the priority on, for listeners that do not poll."""

    def begin(self, longest_s: float | None = None) -> None:
        """Turn the priority of block work on. The priority expires after `longest_s` seconds."""
        self._until = perf_counter() + (self._longest_s if longest_s is None else longest_s)
        self.begun()

    def end(self) -> None:
        """Turn the priority of block work off."""
        self._until = 0.0

    @property
    def is_on(self) -> bool:
        """Return whether requests of clients and other deferrable work should wait."""
        return self._until > 0.0 and perf_counter() < self._until


def _ignore() -> None:
    """Default of `begun`: do nothing."""
