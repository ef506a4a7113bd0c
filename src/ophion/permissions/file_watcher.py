"""Files of rules that somebody changes while the node runs: told soon, not only when the node wants to write.

The lists in force stay as they are until `perm_reloadPermissionsFromFile`: a half-edited file must not shut anybody
out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from ophion.errors import RulesError
from ophion.permissions.allow_list import AllowList
from ophion.runtime.lanes import Lane

log = logging.getLogger(__name__)

_EVERY_S: Final = 1.0


class RulesWatch:
    """A service that looks at the files now and then, and reads one when it is another than before."""

    name = "files of permissions"

    def __init__(self, lists: Sequence[AllowList[Any]], lane: Lane, turn: asyncio.Lock) -> None:
        """`turn` is held while the node itself changes a list: then file and memory differ for a moment."""
        self._lists = lists
        self._lane = lane
        self._turn = turn
        self._seen = [listed.mark for listed in lists]
        self._told: dict[int, str | None] = {}

    async def run(self, ready: Callable[[], None]) -> None:
        """Look until cancelled."""
        ready()
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Tell of each file that does not say any more what is in force, once for each thing it says."""
        for number, listed in enumerate(self._lists):
            async with self._turn:
                mark = listed.file.mark()
                if mark == self._seen[number]:
                    continue
                difference = await self._lane.run(partial(_difference, listed))
                self._seen[number] = mark
            if difference == self._told.get(number):
                continue
            self._told[number] = difference
            if difference is None:
                log.info("%s holds the list in force again", listed.file.path)
            else:
                log.warning("%s was changed, and not by this node: %s", listed.file.path, difference)


def _difference(listed: AllowList[Any]) -> str | None:
    """What a file says otherwise than the list in force; None: nothing."""
    entries = listed.entries
    try:
        found = listed.file.read()
    except RulesError as error:
        return f"{error.message}. The list in force stays as it is."
    more, fewer = len(found.keys() - entries.keys()), len(entries.keys() - found.keys())
    if not more and not fewer:
        return None
    return (
        f"{more} more and {fewer} fewer {listed.file.vocabulary.one}s than in force;"
        " perm_reloadPermissionsFromFile takes them over."
    )
