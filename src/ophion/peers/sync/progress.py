"""How far synchronisation has come: for `eth_syncing`, and for whoever reads the log."""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

from msgspec import Struct

log = logging.getLogger(__name__)

LINE_S: Final = 5.0
"""Between two lines in the log."""
_WINDOW_S: Final = 20.0
"""Speed is that of the last seconds."""


class SyncProgress(Struct, frozen=True):
    """What `eth_syncing` shows."""

    starting: int
    """The head when the node started."""
    current: int
    highest: int
    """The larger of the own head and the best peer's."""


class ProgressLine:
    """Says from time to time how a long synchronisation goes."""

    def __init__(self, first: int, now: float) -> None:
        self._began = now
        self._first = first
        self._last_line = now
        self._samples: deque[tuple[float, int, int]] = deque([(now, first, 0)])
        self._transactions = 0

    def imported(self, number: int, goal: int, transactions: int, peers: int, now: float) -> None:
        """Some more blocks are in the chain, the last of them this one."""
        self._transactions += transactions
        self._samples.append((now, number, self._transactions))
        while len(self._samples) > 2 and self._samples[0][0] < now - _WINDOW_S:
            self._samples.popleft()
        if now - self._last_line < LINE_S:
            return
        self._last_line = now
        since, before, transactions_before = self._samples[0]
        seconds = max(now - since, 1e-3)
        rate = (number - before) / seconds
        log.info(
            "Synchronising: block %s of %s (%.1f %%), %.0f blocks/s, %.0f transactions/s, %d %s, %s left",
            f"{number:,}",
            f"{goal:,}",
            100 * number / goal if goal else 100.0,
            rate,
            (self._transactions - transactions_before) / seconds,
            peers,
            "peer" if peers == 1 else "peers",
            _duration((goal - number) / rate if rate else 0.0),
        )

    def finished(self, number: int, now: float) -> None:
        """The end, told of what was worth a line."""
        seconds = max(now - self._began, 1e-3)
        blocks = number - self._first
        log.info(
            "Synchronised: block %s, %s blocks with %s transactions in %s (%.0f blocks/s)",
            f"{number:,}",
            f"{blocks:,}",
            f"{self._transactions:,}",
            _duration(seconds),
            blocks / seconds,
        )


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds:.0f} s"
