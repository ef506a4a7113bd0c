"""A worker from start to stop: database, methods, listening sockets of the node.

A worker ends when its node stops or crashes, and on SIGTERM. A worker has nothing to save.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import traceback
from collections.abc import Callable
from typing import Final

from ophion.chain.chain import Chain
from ophion.chain.fee_oracle import FeeOracle
from ophion.chain.gas_price import FeeFloor, PriceSampling
from ophion.consensus.engine import Tip
from ophion.consensus.engine_factory import engine_for
from ophion.errors import StorageError
from ophion.native.store import Store, open_store
from ophion.node.listeners import auth_setup_for, json_rpc_settings
from ophion.node.rpc_workers.frames import FrameKind, FrameLink
from ophion.node.rpc_workers.head_page import HeadPage
from ophion.node.rpc_workers.node_state import OnlyInNode, WorkerContext, WorkerMining, WorkerPool, WorkerQueries
from ophion.node.rpc_workers.setup import WorkerSetup
from ophion.node.rpc_workers.worker_dispatcher import dispatcher_maker, worker_table
from ophion.node.rpc_workers.worker_link import WorkerLink
from ophion.node.rpc_workers.worker_metrics import CountReports
from ophion.node.services import rpc_limits
from ophion.node.validator_contract import read_contracts
from ophion.rpc.endpoints.method_access import MethodAccess
from ophion.rpc.endpoints.services import HttpSettings, http_listener, http_methods
from ophion.rpc.services.block_json_cache import BlockJsonCache
from ophion.rpc.transport.http.messages import JSON, Request, Response
from ophion.rpc.transport.http.policy import Result, TokenGuard
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.rpc.transport.streaming import StreamLimit
from ophion.runtime.clock import SystemClock
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.garbage_collection import settle_down
from ophion.runtime.memory import MemoryTrimmer, resident_bytes
from ophion.runtime.memory_budget import MemoryBudget
from ophion.runtime.open_files import allow_open_files
from ophion.runtime.supervisor import Supervisor
from ophion.runtime.thread_pools import Lanes, ThreadLanes

REPORT_INTERVAL_S: Final = 1.0
_MAX_ADOPTED: Final = 64
"""Maximum number of connections that the worker takes over in one iteration of the event loop."""
_UP = Response(200, (b'{"status":"UP"}',), JSON)


class HeadFollower:
    """Moves the head of this process to the head of the node."""

    def __init__(self, chain: Chain, page: HeadPage) -> None:
        self._chain = chain
        self._page = page
        self._counter = page.counter
        self._seen = -1

    def follow(self) -> None:
        """Read the head of the node, if it has changed since the last call. Ends the process if that fails."""
        if self._counter[0] != self._seen:
            try:
                self._move()
            except Exception:  # noqa: BLE001  # this process cannot answer any more; the node starts another one
                traceback.print_exc()
                os._exit(1)

    def _move(self) -> None:
        found, chain = self._page.read(), self._chain
        header, total_difficulty = chain.header(found.hash), chain.total_difficulty(found.hash)
        if header is None or total_difficulty is None:
            raise StorageError(f"The head of the node, block {found.number}, is not in the database.")
        chain.store.follow()
        chain.follow(Tip(header, total_difficulty))
        self._seen = found.change


class WorkerApplication:
    """Paths of the HTTP port in a worker: JSON-RPC and `/liveness`. The node answers all other paths."""

    def __init__(self, guarded: MethodAccess, forward: Callable[[Request], Result]) -> None:
        authenticator = guarded.authenticator
        self.plain: Callable[..., Result] | None = guarded.dispatcher.handle if authenticator is None else None
        self.token_guard: TokenGuard | None = authenticator
        self.close = guarded.close
        self._forward = forward

    def respond(self, request: Request) -> Result:
        """Answer every request except API calls (`POST /`)."""
        if request.path == b"/liveness" and request.method == b"GET":
            return _UP
        return self._forward(request)


async def serve(setup: WorkerSetup, link_socket: socket.socket, feed: socket.socket, page: HeadPage) -> None:
    """Answer clients until the node stops."""
    config, loop = setup.config, asyncio.get_running_loop()
    allow_open_files(config.http.max_connections)
    lanes = ThreadLanes()
    store = open_store(config.data.data_path / "database", create=False, read_only=True)
    chain = Chain.open(store, setup.genesis, engine_for(setup.genesis.spec))
    chain.state_history = config.storage.states_kept
    read_contracts(chain, lambda header: chain.state(header.header))
    context = _context(setup, chain, store, lanes)
    follower = HeadFollower(chain, page)
    follower.follow()

    stopped = asyncio.Event()
    link = WorkerLink(follower.follow, stopped.set, _end)
    await loop.create_unix_connection(lambda: link.frames, sock=link_socket)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    loop.add_signal_handler(signal.SIGTERM, stopped.set)

    shared = SharedResources(
        MemoryBudget(config.limits.max_held_bytes), FairScheduler(priority=lanes.block_priority), lanes.pack
    )
    settings = json_rpc_settings(
        config, shared, auth_setup_for(config.http_auth), dispatcher_maker(link.forward, follower.follow)
    )
    service, reports = _service(context, settings, link, setup.is_measured)
    service.is_fed = True
    supervisor = Supervisor([MemoryTrimmer(), service])

    async def started() -> None:
        _redirect_log(link.frames, loop)
        loop.add_reader(feed, _adopt, feed, service)
        settle_down()
        link.frames.send(FrameKind.READY, resident_bytes())
        loop.call_later(REPORT_INTERVAL_S, report)

    is_due = False

    def connection_closed() -> None:
        nonlocal is_due
        if not is_due:
            is_due = True
            loop.call_soon(tell_closed)

    def tell_closed() -> None:
        nonlocal is_due
        is_due = False
        link.frames.send(FrameKind.CLOSED, service.adopted_and_closed)

    service.places.on_leave = connection_closed

    def report() -> None:
        tell_closed()
        link.frames.send(FrameKind.METRICS, 0, reports.report(resident_bytes()))
        loop.call_later(REPORT_INTERVAL_S, report)

    running = asyncio.create_task(supervisor.run(started))
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    supervisor.stop()
    try:
        await running
    finally:
        waiting.cancel()
        link.frames.flush()
        lanes.close()
        store.close()


def _context(setup: WorkerSetup, chain: Chain, store: Store, lanes: Lanes) -> WorkerContext:
    config, limits, access = setup.config, setup.config.limits, setup.config.access
    queries = WorkerQueries(chain, SystemClock())
    floor = FeeFloor(config.miner.min_gas_price, config.miner.min_priority_fee)
    sampling = PriceSampling(access.gas_price_blocks, access.gas_price_percentile, access.gas_price_max)
    absent = OnlyInNode()
    return WorkerContext(
        queries=queries,
        pool=WorkerPool(queries),  # type: ignore[arg-type]  # the parts that a worker lacks raise `NeedsNode`
        mining=WorkerMining(),  # type: ignore[arg-type]
        lanes=lanes,
        rendered=BlockJsonCache(store, queries.with_total_difficulty),
        fees=FeeOracle(queries, floor, sampling, lanes),
        filters=absent,  # type: ignore[arg-type]
        subscriptions=absent,  # type: ignore[arg-type]
        node=setup.node,
        limits=rpc_limits(config),
        streams=StreamLimit(limits.max_traces, limits.max_response_bytes),
        data_path=str(config.data.data_path),
        services=setup.services,
    )


def _service(
    context: WorkerContext, settings: HttpSettings, link: WorkerLink, is_measured: bool
) -> tuple[HttpService, CountReports]:
    limits = settings.dispatch_limits(context.lanes, settings.error_status)

    def application(loop: asyncio.AbstractEventLoop) -> WorkerApplication:
        table = worker_table(http_methods(context, settings, reports.requests))
        return WorkerApplication(settings.guarded(table, loop, limits), link.forward_path)

    service = http_listener(settings, application)
    reports = CountReports(service.places, is_measured)
    return service, reports


def _adopt(feed: socket.socket, service: HttpService) -> None:
    """Serve the connections that the node has passed on."""
    try:
        _, descriptors, _, _ = socket.recv_fds(feed, _MAX_ADOPTED, _MAX_ADOPTED)
    except BlockingIOError:
        return
    for descriptor in descriptors:
        service.adopt(socket.socket(fileno=descriptor))
    if not descriptors:
        asyncio.get_running_loop().remove_reader(feed)


class _LinkHandler(logging.Handler):
    """Sends log lines to the node, because two processes cannot write one log file."""

    def __init__(self, frames: FrameLink, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._frames = frames
        self._loop = loop

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record).encode(errors="replace")
        # log lines may come from any thread
        self._loop.call_soon_threadsafe(self._frames.send, FrameKind.LOG, record.levelno, text)


def _redirect_log(frames: FrameLink, loop: asyncio.AbstractEventLoop) -> None:
    root = logging.getLogger("ophion")
    root.handlers[:] = [_LinkHandler(frames, loop)]
    root.propagate = False


def _end() -> None:
    """End this process immediately. Called when the node has ended."""
    os._exit(0)
