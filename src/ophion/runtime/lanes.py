"""Lanes: where blocking Rust calls run, so that the event loop never waits for one.

    write   one thread, first come first served: execute and commit. The database has one writer, and so do we.
    build   one thread: build and check blocks on a snapshot, beside the writer.
    read    some threads: calls, proofs, log searches.
    trace   few threads: a trace needs far more memory than a call.
    peers   few threads: reads for the requests of other nodes, and what they send decoded and checked. A peer has one
            job in it at a time, so none waits for another's long list.
    parse   one thread: large requests of clients, before anybody knows what they ask for.
    pack    one thread: answers compressed for clients that ask for it, each client a small piece at a time.
    private one thread: private transactions, run behind the chain.
    private_backlog  two threads: private transactions that need more time, of established and of new groups.
    prune   one thread: looking for what can be deleted with states that are no longer kept.
    files   one thread: the node's own small files, read or forced to disk (the pool's journal, lists of permissions).
    mine    one thread: the search for a proof of work, which uses further threads of its own in Rust.

A lane admits a limited number of jobs. `write`, `build`, `peers`, `private`, `prune` and `files` are the node's, which
waits, and use no other: a lane that refuses must not decide what becomes of the node. `read`, `trace` and `parse` carry
the work of clients, and refuse (`LaneFull`) instead of growing a queue that nobody will see the end of. A deadline
given with a job covers the time in the queue too; the running Rust call is not stopped by it and takes its own. A job
of `read` or `trace` that is cancelled while it runs (its client went away) ends soon after: the extension looks for
that where it looks at its deadline.

Beside them stand `decoding` (decoding.py), a thread of the extension that decodes transactions and recovers senders,
and `haste` (haste.py), which says when the loop has a block to think of first.

`InlineLanes` runs everything at once in the calling thread: the same interface for tests without threads.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from ophion.errors import OphionError
from ophion.native.cancellation import Cancellation
from ophion.native.memory import note_heap
from ophion.runtime.block_priority import BlockPriority
from ophion.runtime.decoding import Decoding, InlineDecoding, ThreadDecoding

T = TypeVar("T")


class LaneFull(OphionError):
    """A lane has as many jobs as it admits."""

    transient = True

    def __init__(self, lane: str, limit: int) -> None:
        self.lane = lane
        self.limit = limit
        super().__init__(f"Too many requests are waiting ({lane}: {limit})")


class DeadlineExceeded(OphionError):
    """A job did not come to its end in the time it was given."""

    transient = True

    def __init__(self, lane: str) -> None:
        self.lane = lane
        super().__init__("Timeout expired")


class Lane(Protocol):
    """One queue of blocking jobs."""

    name: str

    def submit(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """Queue a job; `LaneFull` when the lane admits no more."""

    async def run(self, job: Callable[[], T], deadline_s: float | None = None) -> T:
        """Run a job and wait for its result; `LaneFull` and `DeadlineExceeded` are the lane's own errors."""

    submitted: int
    """Jobs that were admitted so far."""
    rejected: int
    """Those that found the lane full."""
    threads: int
    """Most jobs that run at a time."""

    @property
    def waiting(self) -> int:
        """Jobs admitted and not finished."""


class ThreadLane:
    """A lane of threads, started when first needed."""

    def __init__(self, name: str, threads: int, limit: int | None, is_abortable: bool = False) -> None:
        """`is_abortable`: running jobs may be given up; never for those that write."""
        self.name = name
        self._limit = limit
        self._is_abortable = is_abortable
        self.submitted = 0
        self.rejected = 0
        self.threads = threads
        self._waiting = 0
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=note_heap)

    @property
    def waiting(self) -> int:
        return self._waiting

    def submit(self, job: Callable[[], T]) -> asyncio.Future[T]:
        if self._limit is not None and self._waiting >= self._limit:
            self.rejected += 1
            raise LaneFull(self.name, self._limit)
        self._waiting += 1
        self.submitted += 1
        cancellation = Cancellation() if self._is_abortable else None
        work = job if cancellation is None else partial(_abortable, cancellation, job)
        future = asyncio.get_running_loop().run_in_executor(self._executor, work)
        future.add_done_callback(partial(self._finished, cancellation))
        return future

    async def run(self, job: Callable[[], T], deadline_s: float | None = None) -> T:
        future = self.submit(job)
        if deadline_s is None:
            return await future
        try:
            return await asyncio.wait_for(future, deadline_s)
        except TimeoutError:
            raise DeadlineExceeded(self.name) from None

    def close(self) -> None:
        """Let running jobs end, drop queued ones, and give the threads back."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _finished(self, cancellation: Cancellation | None, future: asyncio.Future[T]) -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()  # an abandoned job's error belongs to nobody
        elif cancellation is not None:
            cancellation.cancel()


def _abortable(cancellation: Cancellation, job: Callable[[], T]) -> T:
    with cancellation:
        return job()


class InlineLane:
    """A lane that runs its jobs in the calling thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting = 0
        self.submitted = 0
        self.rejected = 0
        self.threads = 0

    def submit(self, job: Callable[[], T]) -> asyncio.Future[T]:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(job())
        except Exception as error:  # noqa: BLE001  # handed to whoever awaits the future, as a thread would do
            future.set_exception(error)
        return future

    async def run(self, job: Callable[[], T], deadline_s: float | None = None) -> T:
        return job()


class Lanes(Protocol):
    """The lanes of a node."""

    @property
    def write(self) -> Lane: ...
    @property
    def build(self) -> Lane: ...
    @property
    def decoding(self) -> Decoding: ...
    @property
    def haste(self) -> BlockPriority: ...
    @property
    def read(self) -> Lane: ...
    @property
    def trace(self) -> Lane: ...
    @property
    def peers(self) -> Lane: ...
    @property
    def parse(self) -> Lane: ...
    @property
    def pack(self) -> Lane: ...
    @property
    def private(self) -> Lane: ...
    @property
    def private_backlog(self) -> Lane: ...
    @property
    def prune(self) -> Lane: ...
    @property
    def files(self) -> Lane: ...
    @property
    def mine(self) -> Lane: ...
    def close(self) -> None: ...


class ThreadLanes:
    """The lanes of a running node."""

    def __init__(
        self, read_threads: int | None = None, read_limit: int = 1024, trace_limit: int = 64, parse_limit: int = 256
    ) -> None:
        cores = os.cpu_count() or 2
        self.write = ThreadLane("write", 1, None)
        self.build = ThreadLane("build", 1, None)
        self.haste = BlockPriority()
        self.decoding = ThreadDecoding(self.haste)
        self.read = ThreadLane("read", read_threads or max(2, cores), read_limit, is_abortable=True)
        self.trace = ThreadLane("trace", max(1, cores // 2), trace_limit, is_abortable=True)
        self.peers = ThreadLane("peers", 2, None)
        self.parse = ThreadLane("parse", 1, parse_limit)
        self.pack = ThreadLane("pack", 1, None)
        self.prune = ThreadLane("prune", 1, None)
        self.private = ThreadLane("private", 1, None)
        self.private_backlog = ThreadLane("private_backlog", 2, None)
        self.files = ThreadLane("files", 1, None)
        self.mine = ThreadLane("mine", 1, None)

    def close(self) -> None:
        """Stop taking jobs and wait for the running ones: a commit is never cut short."""
        self.decoding.close()
        private = (self.private_backlog, self.private)
        reading = (self.mine, self.prune, *private, self.pack, self.parse, self.peers, self.trace, self.read)
        for lane in (*reading, self.files, self.build, self.write):
            lane.close()


class InlineLanes:
    """The lanes of a test."""

    def __init__(self) -> None:
        self.write = InlineLane("write")
        self.build = InlineLane("build")
        self.haste = BlockPriority()
        self.decoding = InlineDecoding()
        self.read = InlineLane("read")
        self.trace = InlineLane("trace")
        self.peers = InlineLane("peers")
        self.parse = InlineLane("parse")
        self.pack = InlineLane("pack")
        self.prune = InlineLane("prune")
        self.private = InlineLane("private")
        self.private_backlog = InlineLane("private_backlog")
        self.files = InlineLane("files")
        self.mine = InlineLane("mine")

    def close(self) -> None:
        """Nothing to give back."""
