"""Watches rules files that another program changes while the node runs.

The current lists stay in force until `perm_reloadPermissionsFromFile`. So a half-edited file does not exclude accounts
or nodes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from ophion.errors import RulesError
from ophion.permissions.allow_list import AllowList
from ophion.runtime.thread_pools import Lane

log = logging.getLogger(__name__)

_EVERY_S: Final = 1.0


class RulesFileWatcher:
    """Service that checks the files at intervals and reads the changed files."""

    name = "files of permissions"

    def __init__(self, lists: Sequence[AllowList[Any]], lane: Lane, lock: asyncio.Lock) -> None:
        """Create the watcher. The node holds `lock` while it changes a list, because file and memory differ during the
        change.
        """
        self._lists = lists
        self._lane = lane
        self._lock = lock
        self._seen = [listed.mark for listed in lists]
        self._reported: dict[int, str | None] = {}

    async def run(self, ready: Callable[[], None]) -> None:
        """Check the rules files until cancelled."""
        ready()
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.check_files()

    async def check_files(self) -> None:
        """Log each file that differs from the list in force, once for each content of the file."""
        for number, listed in enumerate(self._lists):
            async with self._lock:
                mark = listed.file.mark()
                if mark == self._seen[number]:
                    continue
                difference = await self._lane.run(partial(_difference, listed))
                self._seen[number] = mark
            if difference == self._reported.get(number):
                continue
            self._reported[number] = difference
            if difference is None:
                log.info("permission file matches the list in force again file=%s", listed.file.path)
            else:
                log.warning(
                    "permission file changed outside of this node file=%s difference=%s", listed.file.path, difference
                )


def _difference(listed: AllowList[Any]) -> str | None:
    """Describe how a file differs from the list in force. Returns None if there is no difference."""
    entries = listed.entries
    try:
        found = listed.file.read()
    except RulesError as error:
        return f"{error.message}. The list in force stays unchanged."
    more, fewer = len(found.keys() - entries.keys()), len(entries.keys() - found.keys())
    if not more and not fewer:
        return None
    return (
        f"{more} more and {fewer} fewer {listed.file.codec.one}s than in force;"
        " perm_reloadPermissionsFromFile applies them."
    )
