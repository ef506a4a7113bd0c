"""`PayloadRetries`: asks a remote enclave again for payloads that were missing when their markers were processed.

A remote enclave does not report arrivals. A missing payload means that this node is no participant, or that the payload
has not arrived yet. So requests are repeated for a day, with growing delays. The number of remembered payloads is
bounded. The oldest payloads are evicted, but `priv_catchUp` still finds them.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from ophion.errors import EnclaveError

log = logging.getLogger(__name__)

MAX_REMEMBERED: Final = 10_000
AT_ONCE: Final = 256
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 300.0
GIVE_UP_S: Final = 24 * 3600.0
_BREATH_S: Final = 1.0
"""Minimum seconds between two requests."""


class _Missed:
    """A payload that the enclave did not have."""

    __slots__ = ("due", "pause_s", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.due = since + FIRST_PAUSE_S
        self.pause_s = FIRST_PAUSE_S


class PayloadRetries:
    """Schedules the requests for missing payloads."""

    def __init__(self, look_for: Callable[[list[bytes]], Awaitable[list[bytes]]]) -> None:
        """Create an empty schedule. `look_for` asks the enclave for payloads, records found payloads as late, and
        returns their keys.
        """
        self._look_for = look_for
        self._missed: dict[bytes, _Missed] = {}
        """Missing payloads, in the order in which the executor missed them."""
        self._due: list[tuple[float, bytes]] = []
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._missed)

    def missed(self, keys: Iterable[bytes]) -> None:
        """Remember payloads that the enclave did not have."""
        now = asyncio.get_running_loop().time()
        for key in keys:
            if key in self._missed:
                continue
            if len(self._missed) >= MAX_REMEMBERED:
                del self._missed[next(iter(self._missed))]
            one = self._missed[key] = _Missed(now)
            heapq.heappush(self._due, (one.due, key))
        if len(self._due) > 2 * MAX_REMEMBERED:
            # evicted payloads leave outdated entries in the heap, so rebuild the heap when most entries are outdated
            self._due = sorted((one.due, key) for key, one in self._missed.items())
        self._changed.set()

    def retry_now(self) -> None:
        """Ask for all payloads now and restart their schedule, because any of them may have arrived."""
        now = asyncio.get_running_loop().time()
        for one in self._missed.values():
            one.pause_s, one.due = FIRST_PAUSE_S, now
        self._due = [(now, key) for key in self._missed]
        self._changed.set()

    async def run(self) -> None:
        """Send due requests until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            keys = self._take(loop.time())
            if keys:
                await self._ask(keys)
                await asyncio.sleep(_BREATH_S)
                continue
            pause = None if not self._due else max(0.0, self._due[0][0] - loop.time())
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _take(self, now: float) -> list[bytes]:
        """Return the due keys, and schedule each again after a pause. Gives up on keys after `GIVE_UP_S` seconds."""
        taken: list[bytes] = []
        while self._due and self._due[0][0] <= now and len(taken) < AT_ONCE:
            _, key = heapq.heappop(self._due)
            one = self._missed.get(key)
            if one is None or one.due > now:
                continue  # the entry is outdated, because its payload was evicted, found or scheduled again
            if now - one.since > GIVE_UP_S:
                del self._missed[key]
                continue
            taken.append(key)
            one.pause_s = min(2 * one.pause_s, LONGEST_PAUSE_S)
            one.due = now + one.pause_s
            heapq.heappush(self._due, (one.due, key))
        return taken

    async def _ask(self, keys: list[bytes]) -> None:
        try:
            found = await self._look_for(keys)
        except EnclaveError as error:
            log.debug("cannot request missing payloads error=%s", error)
            return
        for key in found:
            self._missed.pop(key, None)
        if found:
            log.info("late payloads arrived count=%d", len(found))
