"""`UnprovenWork`: decodes and decrypts requests of senders that have not proven their key yet.

A request names its sender, but only decryption proves the name. So requests of members cannot have priority. Each IP
address has its own queue, and the queues are served round robin. The lane holds at most one of these jobs per thread,
so blocks of peers wait only for a few jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.rpc.transport.http.messages import Request
from ophion.runtime.thread_pools import Lane

SHORT_BYTES: Final = 32 * 1024
"""Maximum size in bytes of a request that is handled on the event loop."""

T = TypeVar("T")


class UnprovenWork:
    """Runs jobs for requests in worker threads, one queue per address of a caller."""

    def __init__(self, lane: Lane) -> None:
        self._queue: FairWorkerQueue[str] = FairWorkerQueue(lane, lambda address: False)

    async def run(self, request: Request, work: Callable[[], T]) -> T:
        """Run a job on the event loop, or in a worker thread if the request is long."""
        return work() if len(request.body) <= SHORT_BYTES else await self._queue.run(request.address, work)
