"""Batches small jobs: jobs that arrive while a batch runs form the next batch.

A single job starts at once. Under load, the jobs of a batch share the cost of switching to a thread and back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ophion.runtime.thread_pools import Lane, LaneFull

A = TypeVar("A")
B = TypeVar("B")


class Batches(Generic[A, B]):
    """Batches jobs of one kind and runs them in a worker thread."""

    def __init__(self, lane: Lane, work: Callable[[Sequence[A]], Sequence[B]], most: int = 512) -> None:
        """Create the batches. `work` returns one result per job; a result that is an exception is raised."""
        self._lane = lane
        self._work = work
        self._most = most
        self._waiting: list[tuple[A, asyncio.Future[B]]] = []
        self._is_running = False

    async def do(self, piece: A) -> B:
        """Run a job in a batch and return its result."""
        return await self.submit(piece)

    def submit(self, piece: A) -> asyncio.Future[B]:
        """Queue a job for a batch and return a future of its result."""
        waiter: asyncio.Future[B] = asyncio.get_running_loop().create_future()
        self._waiting.append((piece, waiter))
        if not self._is_running:
            self._begin()
        return waiter

    def _begin(self) -> None:
        some, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        self._is_running = bool(some)
        if not some:
            return
        pieces, waiters = [piece for piece, _ in some], [waiter for _, waiter in some]
        try:
            job = self._lane.submit(lambda: self._work(pieces))
        except LaneFull as error:
            # fail the queued jobs too, because no later batch would start for them
            waiters += [waiter for _, waiter in self._waiting]
            self._waiting, self._is_running = [], False
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error)
            return
        job.add_done_callback(lambda done: self._end(done, waiters))

    def _end(self, done: asyncio.Future[Sequence[B]], waiters: list[asyncio.Future[B]]) -> None:
        failure = asyncio.CancelledError() if done.cancelled() else done.exception()
        results: Sequence[B | BaseException] = [failure] * len(waiters) if failure is not None else done.result()
        for waiter, result in zip(waiters, results, strict=True):
            if waiter.done():
                continue
            if isinstance(result, asyncio.CancelledError):
                waiter.cancel()
            elif isinstance(result, BaseException):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)
        self._begin()
