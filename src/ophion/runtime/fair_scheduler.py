"""Fair scheduler: divides the time of the event loop between connections.

While the current iteration of the loop has time left, new input is processed at once. Later input waits. The limit is
wall time, which also covers socket reads that the scheduler does not measure. Each iteration gives part of its time to
waiting connections. Connections that recently sent little and used little time are served first. Connections that sent
much follow, and connections that use most of the loop are served last. So an ordinary request overtakes any number of
busy connections.

Long jobs that hold memory have a queue of their own, which runs one job at a time.
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
"""Seconds of one iteration of the event loop after which new requests have to wait."""
SLICE_S: Final = 0.001
SHARE_S: Final = 0.002
"""Seconds of each iteration that are reserved for waiting connections, and for the queue of long jobs."""
_MANY_WAITING: Final = 16
"""With more waiting connections than this, each connection gets a smaller time slice."""
_LITTLE: Final = 1024
"""Maximum size of an ordinary request in bytes."""
_LIGHT_S: Final = 0.02
"""A connection that recently used less than this many seconds does not count as busy."""
LAST: Final = 9.0
"""Rank of the connections that are served last."""
_HALF_S: Final = 1.0
"""Half-life in seconds of the recorded time of a connection."""
_MARK_S: Final = 0.002
"""Seconds for which a reading of the thread's CPU clock is reused. Each reading takes half as long as a request."""


class Worker(Protocol):
    """A connection that has work to do."""

    def work(self) -> None:
        """Work for one time slice of about `slice_s` seconds."""


class LoopShare:
    """Recent use of the event loop by one connection."""

    __slots__ = ("_had_s", "_noted_at")

    def __init__(self) -> None:
        self._had_s = 0.0
        self._noted_at = 0.0

    def rank(self, size: int) -> float:
        """Return the rank of a request of this size; a lower rank is served sooner."""
        if self._had_s < _LIGHT_S:
            return 0.0 if size <= _LITTLE else 1.0 + size * 1e-12
        had_s = self._recent(perf_counter())
        return 2.0 + had_s if had_s >= _LIGHT_S else 1.0 + size * 1e-12

    def record(self, spent_s: float, now: float) -> None:
        """Record the CPU time that a connection used on this thread. CPU time excludes the time of other processes."""
        self._had_s = self._recent(now) + spent_s
        self._noted_at = now

    def _recent(self, now: float) -> float:
        return self._had_s * 0.5 ** ((now - self._noted_at) / _HALF_S) if self._had_s else 0.0


class FairScheduler:
    """Scheduler of one event loop."""

    def __init__(self, turn_s: float = TURN_S, slice_s: float = SLICE_S, priority: BlockPriority | None = None) -> None:
        """Create a scheduler. While `priority` is on, all work waits."""
        self._turn_s = turn_s
        self._block_priority = BlockPriority() if priority is None else priority
        self._block_priority.begun = self._suspend_new_work
        self.slice_s = slice_s
        """Time that one connection may work before it should return."""
        self._waiting: list[tuple[float, int, Worker]] = []
        self._line: deque[Worker] = deque()
        self._first: Worker | None = None
        self._order = count()
        self._is_renewing = False
        self._marked_s, self._marked_at = thread_time(), perf_counter()
        self.ends_at = 0.0
        """Time (of `perf_counter`) until which new work may start. Afterwards `has_time` decides."""

    def __len__(self) -> int:
        """Return the number of waiting connections."""
        return len(self._waiting) + len(self._line)

    @property
    def is_over(self) -> bool:
        """Return whether this iteration of the loop has no time left, so that new work must wait."""
        return perf_counter() >= self.ends_at and not self.has_time()

    @property
    def has_many_waiting(self) -> bool:
        """Return whether so many connections wait that each gets a smaller slice."""
        return len(self._waiting) > _MANY_WAITING

    def wait(self, worker: Worker, rank: float = 0.0) -> None:
        """Queue a connection. The scheduler calls the connection's `work` when the connection gets a time slice."""
        heapq.heappush(self._waiting, (rank, next(self._order), worker))
        self._renew_soon()

    def enqueue(self, worker: Worker) -> None:
        """Queue a long job. Long jobs run in order of arrival."""
        if worker is self._first:
            self._line.appendleft(worker)
        else:
            self._line.append(worker)
        self._renew_soon()

    def end(self, begun: float, share: LoopShare) -> None:
        """Record work that a connection has finished.

        Records at most the CPU time of this thread since the last reading, because other processes may have run.
        """
        now = perf_counter()
        spent_s = now - begun
        if spent_s > self.slice_s:
            spent_s = min(spent_s, self._mark(now))
        share.record(spent_s, now)

    def _mark(self, now: float) -> float:
        """Read the thread's CPU clock; return the CPU time since the last reading."""
        before, self._marked_s, self._marked_at = self._marked_s, thread_time(), now
        return max(0.0, self._marked_s - before)

    def spend(self, seconds: float) -> None:
        """Charge this iteration of the loop for work that the scheduler cannot measure."""
        self._renew_soon()
        self.ends_at -= seconds

    def has_time(self) -> bool:
        """Return whether work may start although `ends_at` has passed.

        In an iteration of the loop without work so far, work may start, because `ends_at` belongs to an earlier
        iteration. While the block priority is on, no work may start.
        """
        is_another = not (self._is_renewing or self._block_priority.is_on)
        self._renew_soon()
        return is_another

    def _renew_soon(self) -> None:
        if not self._is_renewing:
            self._is_renewing = True
            now = perf_counter()
            if now >= self.ends_at and not self._block_priority.is_on:
                self.ends_at = now + self._turn_s
            asyncio.get_running_loop().call_soon(self._renew)

    def _suspend_new_work(self) -> None:
        """Make new work wait from now on. Called in any thread."""
        self.ends_at = 0.0

    def _renew(self) -> None:
        """Start a new step, with waiting connections first."""
        self._is_renewing = False
        if self._block_priority.is_on:
            self._renew_soon()
            return
        now = perf_counter()
        self.ends_at = now + self._turn_s
        if now - self._marked_at > _MARK_S:
            self._mark(now)
        waiting, line, first = self._waiting, self._line, self.ends_at
        for _ in range(len(waiting)):
            heapq.heappop(waiting)[2].work()
            if perf_counter() - now + first - self.ends_at > SHARE_S:
                # `spend` moves `ends_at` back by the charged time. So `first - self.ends_at` is the time that was
                # charged during `work`.
                break
        end = perf_counter() + SHARE_S
        while line and perf_counter() < end:
            self._first = line.popleft()
            self._first.work()
        self._first = None
        if waiting or line:
            self._renew_soon()
