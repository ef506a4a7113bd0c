"""Builds the service that runs the workers of a node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from ophion.chainspec.genesis import Genesis
from ophion.metrics.requests import RequestMetrics
from ophion.node.config import NodeConfig
from ophion.node.listeners import json_rpc_settings
from ophion.node.rpc_workers.forwarded_requests import NodeServices
from ophion.node.rpc_workers.setup import WorkerSetup
from ophion.node.rpc_workers.supervision import RpcWorkers
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.endpoints.services import http_methods
from ophion.rpc.services.context import RpcContext
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.clock import Clock

if TYPE_CHECKING:
    from ophion.rpc.schema.registry import MethodTable

_ALWAYS = ("chain", "state")


def rpc_workers(
    config: NodeConfig,
    genesis: Genesis,
    context: RpcContext,
    service: HttpService,
    shared: SharedResources,
    requests: RequestMetrics | None,
    clock: Clock,
) -> RpcWorkers:
    """Build the service that runs the workers. `service` is the JSON-RPC service over HTTP of this process."""

    def setup() -> WorkerSetup:
        return WorkerSetup(config, genesis, context.node, frozenset(_provided(context)), requests is not None)

    @cache
    def services() -> NodeServices:
        loop = asyncio.get_running_loop()
        settings = json_rpc_settings(config, shared, None)
        limits = settings.dispatch_limits(context.lanes, settings.error_status)

        def dispatcher(table: MethodTable) -> Dispatcher:
            return Dispatcher(table, loop, limits)

        return NodeServices(
            dispatcher(http_methods(context, settings, requests)),
            dispatcher(http_methods(context, settings)),
            service.application(),
            config.limits.max_response_bytes,
        )

    workers = RpcWorkers(config.http.workers, context.queries, service, setup, services, requests, clock)
    service.on_open = workers.ports_opened
    service.offer = workers.take
    return workers


def _provided(context: RpcContext) -> Iterator[str]:
    yield from _ALWAYS
    yield from (name for name in context.__struct_fields__ if context.provides(name))
