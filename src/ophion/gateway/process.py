"""Runs a gateway as its own process."""

from __future__ import annotations

import asyncio
import signal

import uvloop

from ophion.gateway.backends import BackendNetwork
from ophion.gateway.landing_page import page_files
from ophion.gateway.service import MAX_CONNECTIONS, GatewayService
from ophion.gateway.upstream import MAX_UPSTREAM_CONNECTIONS
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime import logs
from ophion.runtime.garbage_collection import settle_down
from ophion.runtime.memory import MemoryTrimmer
from ophion.runtime.open_files import allow_open_files
from ophion.runtime.supervisor import Supervisor
from ophion.runtime.thread_pools import ThreadLane


def run_gateway(site: BackendNetwork, host: str, port: int) -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit code."""
    logs.configure(logs.LogLevel.INFO)
    allow_open_files(2 * MAX_CONNECTIONS + MAX_UPSTREAM_CONNECTIONS)
    lane = ThreadLane("pack", 1, None)
    service = GatewayService(lambda: site, page_files(), host, port, shared=SharedResources(lane=lane), name="Proxy")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(service))
    finally:
        lane.close()
    return 0


async def _serve(service: GatewayService) -> None:
    supervisor = Supervisor([MemoryTrimmer(), service])
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, supervisor.stop)
    await supervisor.run(settle_down)
