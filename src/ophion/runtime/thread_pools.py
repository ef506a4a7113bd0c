"""Lanes: thread pools for blocking Rust calls, so that the event loop never blocks.

    write    one thread, first come first served: execute and commit. The database has one writer.
    build    one thread: build and check blocks on a snapshot, beside the writer.
    read     some threads: calls, proofs, log searches.
    trace    few threads: a trace needs far more memory than a call.
    peers    few threads: reads for other nodes, and decoding of their messages. Each peer has one job at a time.
    parse    one thread: large requests of clients, before their method is known.
    pack     one thread: compression of replies, one small piece at a time.
    private  one thread: private transactions, executed behind the chain.
    private_backlog  two threads: slow private transactions, one thread for established and one for new groups.
    prune    one thread: search for states that can be deleted.
    files    one thread: the node's own small files (pool journal, permission lists).
    mine     one thread: proof of work, which uses further threads in Rust.

A lane admits a limited number of jobs. `write`, `build`, `peers`, `private`, `prune` and `files` serve the node itself,
which waits for them. `read`, `trace` and `parse` serve clients. When their queue is full, a single request raises
`LaneFull`, and a request of a batch waits for a slot (slots.py). The deadline of a job includes its time in the queue;
a running Rust call has a deadline of its own. When a client disconnects, its job in `read` or `trace` is cancelled and
stops at the next deadline check of the Rust extension.

`decoding` (transaction_decoding.py) is a thread of the Rust extension that decodes transactions and recovers senders.
`block_priority` (block_priority.py) is on while the loop must work on a block first.

`InlineLanes` runs everything in the calling thread, for tests.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from ophion.errors import OphionError
from ophion.native.cancellation import Cancellation
from ophion.native.memory import note_heap
from ophion.runtime.block_priority import BlockPriority
from ophion.runtime.slots import WAITS_FOR_SLOT, Slots
from ophion.runtime.transaction_decoding import InlineTransactionDecoder, ThreadTransactionDecoder, TransactionDecoder

T = TypeVar("T")


class LaneFull(OphionError):
    """Raised when the lane has its maximum number of jobs."""

    transient = True

    def __init__(self, lane: str, limit: int) -> None:
        self.lane = lane
        self.limit = limit
        super().__init__(f"Too many requests are waiting ({lane}: {limit})")


class DeadlineExceeded(OphionError):
    """Raised when a job does not finish before its deadline."""

    transient = True

    def __init__(self, lane: str) -> None:
        self.lane = lane
        super().__init__("Timeout expired")


class Lane(Protocol):
    """A thread pool with a bounded queue of blocking jobs (interface)."""

    name: str

    def submit(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """Queue a job; raises `LaneFull`."""

    async def run(self, job: Callable[[], T], deadline_s: float | None = None) -> T:
        """Run a job and return its result; raises `LaneFull` and `DeadlineExceeded`."""

    submitted: int
    """Number of jobs admitted so far."""
    rejected: int
    """Number of jobs refused because the lane was full."""
    threads: int
    """Number of threads: the maximum number of running jobs."""

    @property
    def waiting(self) -> int:
        """Return the number of jobs that are admitted and not finished."""


class ThreadLane:
    """A lane with its own threads, which start when first needed."""

    def __init__(self, name: str, threads: int, limit: int | None, is_abortable: bool = False) -> None:
        """Create a lane. With `is_abortable`, running jobs may be abandoned, so these jobs must not write."""
        self.name = name
        self._slots = Slots(limit)
        self._is_abortable = is_abortable
        self.submitted = 0
        self.rejected = 0
        self.threads = threads
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=note_heap)

    @property
    def waiting(self) -> int:
        return self._slots.used

    def submit(self, job: Callable[[], T]) -> asyncio.Future[T]:
        if not self._slots.enter():
            self.rejected += 1
            raise LaneFull(self.name, self._slots.limit or 0)
        return self._start(job, False)

    def _start(self, job: Callable[[], T], in_batch: bool) -> asyncio.Future[T]:
        self.submitted += 1
        cancellation = Cancellation() if self._is_abortable else None
        work = job if cancellation is None else partial(_abortable, cancellation, job)
        future = asyncio.get_running_loop().run_in_executor(self._executor, work)
        future.add_done_callback(partial(self._finished, cancellation, in_batch))
        return future

    async def run(self, job: Callable[[], T], deadline_s: float | None = None) -> T:
        if WAITS_FOR_SLOT.get():
            work: Awaitable[T] = self._run_in_batch(job)
        else:
            work = self.submit(job)
        if deadline_s is None:
            return await work
        try:
            return await asyncio.wait_for(work, deadline_s)
        except TimeoutError:
            raise DeadlineExceeded(self.name) from None

    async def _run_in_batch(self, job: Callable[[], T]) -> T:
        await self._slots.wait()
        return await self._start(job, True)

    def close(self) -> None:
        """Finish running jobs, drop queued jobs and end the threads."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _finished(self, cancellation: Cancellation | None, in_batch: bool, future: asyncio.Future[T]) -> None:
        self._slots.leave(in_batch)
        if not future.cancelled():
            # mark the exception as retrieved, because the caller may have abandoned the job
            future.exception()
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
        except Exception as error:  # noqa: BLE001  # the future gets the error, as from a thread
            future.set_exception(error)
        return future

    async def run(self, job: Callable[[], T], deadline_s: float | None = None) -> T:
        return job()


class Lanes(Protocol):
    """The lanes of a node, by purpose (interface)."""

    @property
    def write(self) -> Lane: ...
    @property
    def build(self) -> Lane: ...
    @property
    def decoding(self) -> TransactionDecoder: ...
    @property
    def block_priority(self) -> BlockPriority: ...
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
    """The lanes of a running node, each with threads of its own."""

    def __init__(
        self, read_threads: int | None = None, read_limit: int = 1024, trace_limit: int = 64, parse_limit: int = 256
    ) -> None:
        cores = os.cpu_count() or 2
        self.write = ThreadLane("write", 1, None)
        self.build = ThreadLane("build", 1, None)
        self.block_priority = BlockPriority()
        self.decoding = ThreadTransactionDecoder(self.block_priority)
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
        """Refuse new jobs and wait for running jobs, so that no commit is interrupted."""
        self.decoding.close()
        private = (self.private_backlog, self.private)
        reading = (self.mine, self.prune, *private, self.pack, self.parse, self.peers, self.trace, self.read)
        for lane in (*reading, self.files, self.build, self.write):
            lane.close()


class InlineLanes:
    """The lanes of a test, without threads: each job runs in the calling thread."""

    def __init__(self) -> None:
        self.write = InlineLane("write")
        self.build = InlineLane("build")
        self.block_priority = BlockPriority()
        self.decoding = InlineTransactionDecoder()
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
        """Do nothing, because there are no threads."""
