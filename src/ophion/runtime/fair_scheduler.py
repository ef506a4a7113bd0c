"""Whose turn it is: how long the event loop works for one connection before it looks after the others.

A connection does its work when it arrives, as long as there is time in this turn of the loop. When the time is up, by
the clock, since reading the sockets of a crowd takes longer than all that is measured here, what arrives is put aside
and waits. In each turn those who wait get a part of it: first those who have sent little and have not kept the loop
busy lately, then those who have sent much, at last those who do nothing else; so somebody with an ordinary request
passes a crowd that keeps the loop busy, however large the crowd is.

Work that is known to be long, and to hold memory until it is done, stands in a line of its own and is done one after
the other.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from itertools import count
from time import perf_counter, thread_time
from typing import Final, Protocol

from ophion.runtime.block_priority import BlockPriority

TURN_S: Final = 0.006
"""How long a turn may take before what arrives is put aside."""
SLICE_S: Final = 0.001
SHARE_S: Final = 0.002
"""How much of a turn those who wait get, and those in line."""
_CROWD: Final = 16
"""From so many who wait on, each newcomer gets a small piece of its work done first."""
_LITTLE: Final = 1024
"""Bytes of an ordinary request."""
_LIGHT_S: Final = 0.02
"""Whoever has had less than this lately does not keep the loop busy."""
LAST: Final = 9.0
"""The rank behind everybody else."""
_HALF_S: Final = 1.0
"""After this time half of what somebody has had is forgotten."""
_MARK_S: Final = 0.002
"""How old the last look at this thread's own clock may be: one costs a system call, as much as half a request."""


class Worker(Protocol):
    """Somebody with work to do."""

    def work(self) -> None:
        """Go on for about `Turns.slice_s`; whoever has not finished waits for the next turn."""


class Share:
    """What one connection has had of the loop lately."""

    __slots__ = ("_had_s", "_noted_at")

    def __init__(self) -> None:
        self._had_s = 0.0
        self._noted_at = 0.0

    def rank(self, size: int) -> float:
        """Where in the order somebody with so many bytes comes; lower is sooner."""
        if self._had_s < _LIGHT_S:
            return 0.0 if size <= _LITTLE else 1.0 + size * 1e-12
        had_s = self._recent(perf_counter())
        return 2.0 + had_s if had_s >= _LIGHT_S else 1.0 + size * 1e-12

    def note(self, spent_s: float, now: float) -> None:
        """It has had some more, in time of this thread: that others had the processor meanwhile is not its fault."""
        self._had_s = self._recent(now) + spent_s
        self._noted_at = now

    def _recent(self, now: float) -> float:
        return self._had_s * 0.5 ** ((now - self._noted_at) / _HALF_S) if self._had_s else 0.0


class Turns:
    """The turns of one event loop."""

    def __init__(self, turn_s: float = TURN_S, slice_s: float = SLICE_S, haste: BlockPriority | None = None) -> None:
        """In `haste` what arrives is put aside, and nobody's turn comes."""
        self._turn_s = turn_s
        self._haste = BlockPriority() if haste is None else haste
        self._haste.begun = self._break_off
        self.slice_s = slice_s
        """How long one connection may work before it is asked to stop."""
        self._waiting: list[tuple[float, int, Worker]] = []
        self._line: deque[Worker] = deque()
        self._first: Worker | None = None
        self._order = count()
        self._is_renewing = False
        self._marked_s, self._marked_at = thread_time(), perf_counter()
        self.ends_at = 0.0
        """Until then work may begin; from then on `goes_on` is asked."""

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting) + len(self._line)

    @property
    def is_over(self) -> bool:
        """Whether what arrives now must wait."""
        return perf_counter() >= self.ends_at and not self.goes_on()

    @property
    def is_crowded(self) -> bool:
        """Whether so many wait that each should do with less."""
        return len(self._waiting) > _CROWD

    def wait(self, worker: Worker, rank: float = 0.0) -> None:
        """Somebody who has more to do; it is told when its turn has come."""
        heapq.heappush(self._waiting, (rank, next(self._order), worker))
        self._renew_soon()

    def line_up(self, worker: Worker) -> None:
        """Somebody with long work, which is done before that of others who line up later."""
        if worker is self._first:
            self._line.appendleft(worker)
        else:
            self._line.append(worker)
        self._renew_soon()

    def end(self, begun: float, share: Share) -> None:
        """Work that somebody began then has ended: so much of its share is gone.

        Work that took long may have had the processor for a part of the time only, which is not its fault: it has had
        no more than this thread has since somebody last looked.
        """
        now = perf_counter()
        spent_s = now - begun
        if spent_s > self.slice_s:
            spent_s = min(spent_s, self._mark(now))
        share.note(spent_s, now)

    def _mark(self, now: float) -> float:
        """Look at the clock of this thread; what it has had since the last look."""
        before, self._marked_s, self._marked_at = self._marked_s, thread_time(), now
        return max(0.0, self._marked_s - before)

    def spend(self, seconds: float) -> None:
        """So much of this turn is gone for what somebody has begun and nobody will measure."""
        self._renew_soon()
        self.ends_at -= seconds

    def goes_on(self) -> bool:
        """Whether the turn goes on although the clock is beyond `ends_at`: it does when that was the end of another,
        long ago, since turns are not counted when there is little to do."""
        is_another = not (self._is_renewing or self._haste.is_on)
        self._renew_soon()
        return is_another

    def _renew_soon(self) -> None:
        if not self._is_renewing:
            self._is_renewing = True
            now = perf_counter()
            if now >= self.ends_at and not self._haste.is_on:
                self.ends_at = now + self._turn_s
            asyncio.get_running_loop().call_soon(self._renew)

    def _break_off(self) -> None:
        """In any thread: what arrives from now on is put aside."""
        self.ends_at = 0.0

    def _renew(self) -> None:
        """A new turn: first for those who wait."""
        self._is_renewing = False
        if self._haste.is_on:
            self._renew_soon()
            return
        now = perf_counter()
        self.ends_at = now + self._turn_s
        if now - self._marked_at > _MARK_S:
            self._mark(now)
        waiting, line, first = self._waiting, self._line, self.ends_at
        for _ in range(len(waiting)):
            heapq.heappop(waiting)[2].work()
            if perf_counter() - now + first - self.ends_at > SHARE_S:  # with what they have begun (`spend`)
                break
        end = perf_counter() + SHARE_S
        while line and perf_counter() < end:
            self._first = line.popleft()
            self._first.work()
        self._first = None
        if waiting or line:
            self._renew_soon()
