"""`BlockPriority`: a block of our own is on its way through the loop, so everybody who can wait does.

From the moment it is due until its head is announced a block comes by the loop a dozen times: back from a lane, into
consensus, to the next lane. Each time the loop first looks at its sockets, and when thousands of transactions a second
come in, that alone takes milliseconds. Who works for clients asks `is_on` and puts off what has arrived; it is not
lost, and waits no longer than the block takes on the loop: while a lane has the block, everything goes on as usual.

It is begun in the lane in which the block has come to the end of a stage, and ended where the next one takes over. One
that nobody ends is over by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

LONGEST_S: Final = 0.01
"""So long do others wait at most, whatever becomes of the block."""


class BlockPriority:
    """Of one event loop. May be begun and ended in any thread: it is one number."""

    __slots__ = ("_longest_s", "_until", "begun")

    def __init__(self, longest_s: float = LONGEST_S) -> None:
        self._longest_s = longest_s
        self._until = 0.0
        self.begun: Callable[[], None] = _nobody
        """Called in the thread that begins, for somebody who asks less often."""

    def begin(self) -> None:
        """Others wait from now on."""
        self._until = perf_counter() + self._longest_s
        self.begun()

    def end(self) -> None:
        """They go on."""
        self._until = 0.0

    @property
    def is_on(self) -> bool:
        """Whether work that can wait should."""
        return self._until > 0.0 and perf_counter() < self._until


def _nobody() -> None:
    """Who hears of it where nobody wants to."""
