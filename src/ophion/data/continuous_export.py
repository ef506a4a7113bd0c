"""Exports blocks as they become final, and joins the small files of complete partitions.

Under IBFT 2.0 and QBFT, every committed block is final; on other networks, a block is final after a number of further
blocks. The joined file of a partition is written and listed before its parts are deleted. So a killed process leaves
every row listed exactly once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ophion.data.export import Export, ExportResult
from ophion.data.table_reader import TableReader

POLL_S: Final = 1.0


class Follower:
    """Repeats an export, each time up to the newest final block."""

    def __init__(
        self,
        export: Export,
        reader: TableReader,
        depth: int,
        wait: Callable[[float], bool],
    ) -> None:
        """Create a follower. `wait` sleeps for some seconds and returns whether to continue."""
        self._export = export
        self._reader = reader
        self._depth = depth
        self._wait = wait

    def run(self, first: int, on_round: Callable[[int, ExportResult], None]) -> None:
        """Export until `wait` returns False. `on_round` receives the last block and the counts of each round."""
        done = first - 1
        is_first = True
        while True:
            last = self._reader.head().number - self._depth
            if last > done:
                result = self._export.run(first, last, verify=is_first)
                self._export.compact(last)
                on_round(last, result)
                done, is_first = last, False
            if not self._wait(POLL_S):
                return
