"""Starts the workers of a node, restarts a worker that has ended, and ends all workers with the node."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ophion.chain.queries import ChainQueries
from ophion.metrics.requests import RequestMetrics
from ophion.node.rpc_workers.forwarded_requests import ForwardedRequests, NodeServices
from ophion.node.rpc_workers.frames import FrameKind, FrameLink
from ophion.node.rpc_workers.head_page import HeadPage
from ophion.node.rpc_workers.worker_metrics import add_counts, decode_counts
from ophion.primitives.header import HashedHeader
from ophion.rpc.transport.http.service import HttpService
from ophion.runtime.clock import Clock

if TYPE_CHECKING:
    from ophion.node.rpc_workers.setup import WorkerSetup

log = logging.getLogger(__name__)

_MIN_PAUSE_S: Final = 0.2
_MAX_PAUSE_S: Final = 10.0
_STEADY_S: Final = 30.0
"""Seconds after which a worker counts as healthy: when such a worker ends, its replacement starts without a long pause.
"""
_STOP_TIMEOUT_S: Final = 3.0
_CHECK_S: Final = 5.0
_MAX_SILENCE_S: Final = 60.0
"""Seconds without a report after which a worker is killed. A worker that hangs keeps its clients waiting, and its open
snapshot keeps the database from reusing pages.
"""
_MEBIBYTE: Final = 2**20


class RpcWorkers:
    """A service that keeps a number of workers running."""

    name = "rpc workers"

    def __init__(
        self,
        count: int,
        queries: ChainQueries,
        service: HttpService,
        setup: Callable[[], WorkerSetup],
        services: Callable[[], NodeServices],
        requests: RequestMetrics | None,
        clock: Clock,
    ) -> None:
        """Create the service. `setup` and `services` are called when the ports are open."""
        self.count = count
        self.page = HeadPage.create()
        self.workers: dict[int, _Worker] = {}
        """Running workers by number."""
        self.service = service
        self.services = services
        self.requests = requests
        self.clock = clock
        self._setup = setup
        self._setup_text = b""
        self._are_ports_open = asyncio.Event()
        self._publish(queries.head)
        queries.on_head = self._publish

    def ports_opened(self) -> None:
        """Start the workers. Called when the listening sockets are ready."""
        self._are_ports_open.set()

    async def run(self, ready: Callable[[], None]) -> None:
        """Keep the workers running until cancelled."""
        ready()
        await self._are_ports_open.wait()
        self._setup_text = self._setup().encode()
        tasks = [asyncio.create_task(self._keep(number), name=f"rpc worker {number}") for number in range(self.count)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _publish(self, head: HashedHeader) -> None:
        """Publish a head to all workers, before this process answers from this head."""
        self.page.write(head.number, head.hash)
        for worker in self.workers.values():
            worker.link.send(FrameKind.HEAD)

    async def _keep(self, number: int) -> None:
        """Start one worker again whenever it ends."""
        pause_s = _MIN_PAUSE_S
        while True:
            begun = self.clock.monotonic()
            worker = _Worker(self, number)
            try:
                status = await worker.run(self._setup_text)
            except OSError as error:
                status = error.strerror or str(error)
            lasted = self.clock.monotonic() - begun
            pause_s = _MIN_PAUSE_S if lasted > _STEADY_S else min(2 * pause_s, _MAX_PAUSE_S)
            log.warning("rpc worker ended, starting another number=%d status=%s after=%.0fs", number, status, lasted)
            await asyncio.sleep(pause_s)

    def take(self, connection: socket.socket) -> bool:
        """Pass a new connection to the worker with the fewest connections. Returns False if this process serves it."""
        ready = [worker for worker in self.workers.values() if worker.is_ready]
        worker = min(ready, key=lambda worker: worker.connections, default=None)
        return worker is not None and worker.connections <= self.service.connections and worker.take(connection)

    def connections_changed(self) -> None:
        """Update the number of connections of all workers."""
        self.service.places.elsewhere = sum(worker.connections for worker in self.workers.values())


class _Worker:
    """One worker process."""

    def __init__(self, owner: RpcWorkers, number: int) -> None:
        self._owner = owner
        self.number = number
        self._passed = self._closed = 0
        self._heard_at = 0.0
        self.is_ready = False
        self.link = FrameLink(self._receive, self._lost)
        self._feed: socket.socket | None = None
        self._requests = ForwardedRequests(self.link.send, owner.services)
        self._handlers: Mapping[FrameKind, Callable[[int, bytes], None]] = {
            FrameKind.REQUEST: self._requests.request,
            FrameKind.PATH: self._requests.path,
            FrameKind.CANCEL: lambda number, _: self._requests.cancel(number),
            FrameKind.METRICS: self._count,
            FrameKind.CLOSED: self._note_closed,
            FrameKind.READY: self._ready,
            FrameKind.LOG: self._log,
        }

    @property
    def connections(self) -> int:
        """Number of connections that were passed to the worker and that it has not reported as closed."""
        return self._passed - self._closed

    async def run(self, setup: bytes) -> str:
        """Run the process until it ends; return its exit status. Ends it when cancelled."""
        owner = self._owner
        ours, theirs = socket.socketpair()
        feed, fed = socket.socketpair()
        ours.setblocking(False)
        feed.setblocking(False)
        self._feed = feed
        inherited = (theirs.fileno(), fed.fileno(), owner.page.descriptor)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "ophion.node.rpc_workers", *map(str, inherited)),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=inherited,
            )
        except BaseException:
            ours.close()
            feed.close()
            raise
        finally:
            theirs.close()
            fed.close()
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: self.link, sock=ours)
            self.link.send(FrameKind.SETUP, 0, setup)
            owner.workers[self.number] = self
            status = await self._ended(process)
            return f"signal {-status}" if status < 0 else str(status)
        finally:
            self.is_ready = False
            feed.close()
            owner.workers.pop(self.number, None)
            owner.connections_changed()
            await self._end(process)

    async def _ended(self, process: asyncio.subprocess.Process) -> int:
        """Wait until the process has ended, and kill it if it hangs. Returns its exit status."""
        clock = self._owner.clock
        self._heard_at = clock.monotonic()
        while True:
            try:
                return await asyncio.wait_for(process.wait(), _CHECK_S)
            except TimeoutError:
                if clock.monotonic() - self._heard_at > _MAX_SILENCE_S:
                    log.error("rpc worker hangs and is killed number=%d", self.number)
                    self.is_ready = False
                    process.kill()
                    return await process.wait()

    def take(self, connection: socket.socket) -> bool:
        """Pass a connection to the worker process. Returns False if the socket to the worker is full or closed."""
        assert self._feed is not None
        try:
            socket.send_fds(self._feed, [b"."], [connection.fileno()])
        except OSError:
            return False
        self._passed += 1
        self._owner.connections_changed()
        return True

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        self._requests.close()
        if process.returncode is None:
            self.link.send(FrameKind.STOP)
            self.link.flush()
            try:
                await asyncio.wait_for(process.wait(), _STOP_TIMEOUT_S)
            except TimeoutError:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        self.link.close()

    def _receive(self, kind: FrameKind, number: int, payload: bytes) -> None:
        self._heard_at = self._owner.clock.monotonic()
        self._handlers[kind](number, payload)

    def _lost(self) -> None:
        """Abandon the requests of a worker whose process ends."""
        self.is_ready = False
        self._requests.close()

    def _ready(self, resident: int, payload: bytes) -> None:
        self.is_ready = True
        log.info("rpc worker started number=%d memory=%d MiB", self.number, resident // _MEBIBYTE)

    def _count(self, number: int, payload: bytes) -> None:
        counts = decode_counts(payload)
        add_counts(counts, self._owner.requests, self._owner.service.places)

    def _note_closed(self, closed: int, payload: bytes) -> None:
        self._closed = closed
        self._owner.connections_changed()

    def _log(self, level: int, payload: bytes) -> None:
        log.log(level, "rpc worker %d: %s", self.number, payload.decode(errors="replace"))
