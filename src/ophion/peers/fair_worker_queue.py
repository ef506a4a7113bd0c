"""`FairWorkerQueue`: shares the worker threads of the lane `peers` between peers.

The lane itself is first come, first served: twenty unknown peers with sixteen messages each would delay the block of a
validator by hundreds of jobs. `FairWorkerQueue` hands the lane only as many jobs as the lane has threads. Further jobs
wait in one queue per peer. Jobs of members run first, and jobs of unknown peers run round robin.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ophion.runtime.thread_pools import DeadlineExceeded, Lane

T = TypeVar("T")
Owner = TypeVar("Owner", bound=Hashable)

_MEMBERS_BEFORE_UNKNOWN: Final = 8
"""Number of jobs of network members after which one job of an unknown peer runs."""


class _Job(NamedTuple):
    work: Callable[[], Any]
    result: asyncio.Future[Any]


class FairWorkerQueue(Generic[Owner]):
    """Runs jobs for peers in worker threads, with one job queue per peer."""

    def __init__(self, lane: Lane, is_member: Callable[[Owner], bool]) -> None:
        self._lane = lane
        self._is_member = is_member
        self._members: OrderedDict[Owner, deque[_Job]] = OrderedDict()
        self._unknown: OrderedDict[Owner, deque[_Job]] = OrderedDict()
        self._running = 0
        self._members_in_a_row = 0

    async def run(self, owner: Owner, work: Callable[[], T], deadline_s: float | None = None) -> T:
        """Run a job for a peer. Raises `DeadlineExceeded` if the job has not ended before the deadline."""
        if not self._lane.threads:
            return await self._lane.run(work, deadline_s)
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        queues = self._members if self._is_member(owner) else self._unknown
        queues.setdefault(owner, deque()).append(_Job(work, result))
        self._start()
        if deadline_s is None:
            return await result
        try:
            return await asyncio.wait_for(result, deadline_s)
        except TimeoutError:
            raise DeadlineExceeded(self._lane.name) from None

    def _start(self) -> None:
        while self._running < self._lane.threads and (job := self._next()) is not None:
            if not job.result.done():  # skip a job that its caller has cancelled
                self._running += 1
                self._lane.submit(job.work).add_done_callback(partial(self._finished, job.result))

    def _next(self) -> _Job | None:
        is_members_turn = self._members_in_a_row < _MEMBERS_BEFORE_UNKNOWN or not self._unknown
        queues = self._members if self._members and is_members_turn else self._unknown
        if not queues:
            return None
        self._members_in_a_row = self._members_in_a_row + 1 if queues is self._members else 0
        owner, jobs = queues.popitem(last=False)
        job = jobs.popleft()
        if jobs:
            queues[owner] = jobs  # the peer still has jobs, so move it to the end of the queue
        return job

    def _finished(self, result: asyncio.Future[T], done: asyncio.Future[T]) -> None:
        self._running -= 1
        if not result.done():
            if done.cancelled():
                result.cancel()
            elif (error := done.exception()) is not None:
                result.set_exception(error)
            else:
                result.set_result(done.result())
        self._start()
