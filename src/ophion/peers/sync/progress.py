"""Synchronisation progress for `eth_syncing` and the log."""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

from msgspec import Struct

log = logging.getLogger(__name__)

LINE_S: Final = 5.0
"""Seconds between two lines of the progress log."""
_WINDOW_S: Final = 20.0
"""Seconds over which rates are measured."""


class SyncProgress(Struct, frozen=True):
    """The values that `eth_syncing` returns."""

    starting: int
    """Number of the head when the node started."""
    current: int
    highest: int
    """Number of the own head or of the best peer's head, whichever is higher."""


class ProgressLog:
    """Logs the progress of a long synchronisation."""

    def __init__(self, first: int, now: float) -> None:
        self._began = now
        self._first = first
        self._last_line = now
        self._samples: deque[tuple[float, int, int]] = deque([(now, first, 0)])
        self._transactions = 0

    def imported(self, number: int, goal: int, transactions: int, peers: int, now: float) -> None:
        """Record an import up to block `number`, and log the progress when it is due."""
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
            "synchronising block=%d goal=%d percent=%.1f blocks_per_s=%.0f txs_per_s=%.0f peers=%d remaining_s=%.0f",
            number,
            goal,
            100 * number / goal if goal else 100.0,
            rate,
            (self._transactions - transactions_before) / seconds,
            peers,
            (goal - number) / rate if rate else 0.0,
        )

    def finished(self, number: int, now: float) -> None:
        """Log that a long synchronisation has ended, with its duration and its rate."""
        seconds = max(now - self._began, 1e-3)
        blocks = number - self._first
        log.info(
            "synchronised block=%d blocks=%d txs=%d elapsed_s=%.1f blocks_per_s=%.0f",
            number,
            blocks,
            self._transactions,
            seconds,
            blocks / seconds,
        )
