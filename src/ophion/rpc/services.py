"""The services of the interface, ready for the supervisor.

    context, settings -> method table -> dispatcher -> HttpService / WebSocketService

Each transport has its own method table, made once when the service starts: its groups are in it, and nothing is asked
about groups afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from ophion.rpc import openrpc
from ophion.rpc.access import HostList, OriginList
from ophion.rpc.context import RpcContext
from ophion.rpc.dispatcher import BAD_REQUEST, OK, Dispatcher, DispatchLimits
from ophion.rpc.health import Health
from ophion.rpc.http_connection import HttpLimits
from ophion.rpc.methods import all_methods
from ophion.rpc.registry import HTTP, WEBSOCKET, Bound, is_enabled
from ophion.rpc.server import HttpService, RpcApplication
from ophion.rpc.websocket import WebSocketLimits, WebSocketService

_DEFAULT_GROUPS: Final = ("eth", "net", "web3")


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """How JSON-RPC is served over HTTP."""

    host: str = "127.0.0.1"
    port: int = 8545
    groups: tuple[str, ...] = _DEFAULT_GROUPS
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1")
    origins: tuple[str, ...] = ()
    max_batch: int = 1024
    timeout_s: float = 30.0
    errors_as_400: bool = False
    limits: HttpLimits = field(default_factory=HttpLimits)


@dataclass(frozen=True, slots=True)
class WebSocketSettings:
    """How JSON-RPC is served over WebSocket."""

    host: str = "127.0.0.1"
    port: int = 8546
    groups: tuple[str, ...] = _DEFAULT_GROUPS
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1")
    max_batch: int = 1024
    timeout_s: float = 30.0
    limits: WebSocketLimits = field(default_factory=WebSocketLimits)


def http_service(context: RpcContext, settings: HttpSettings, health: Health) -> HttpService:
    """JSON-RPC over HTTP."""
    limits = DispatchLimits(settings.max_batch, settings.timeout_s, BAD_REQUEST if settings.errors_as_400 else OK)

    def application(loop: asyncio.AbstractEventLoop) -> RpcApplication:
        return RpcApplication(Dispatcher(method_table(context, settings.groups, HTTP), loop, limits), health)

    return HttpService(
        "JsonRPC service",
        settings.host,
        settings.port,
        HostList(settings.hosts),
        OriginList(settings.origins),
        settings.limits,
        application,
    )


def websocket_service(context: RpcContext, settings: WebSocketSettings) -> WebSocketService:
    """JSON-RPC and subscriptions over WebSocket."""
    limits = DispatchLimits(settings.max_batch, settings.timeout_s)

    def dispatcher(loop: asyncio.AbstractEventLoop) -> Dispatcher:
        return Dispatcher(method_table(context, settings.groups, WEBSOCKET), loop, limits)

    return WebSocketService(
        "Websocket service",
        settings.host,
        settings.port,
        HostList(settings.hosts),
        settings.limits,
        dispatcher,
        context.subscriptions.drop,
    )


def method_table(context: RpcContext, groups: Sequence[str], transport: str) -> dict[str, Bound]:
    """Every known method, bound to this context or to the answer that it is not enabled."""
    enabled = effective_groups(groups)
    registry = all_methods()

    @cache
    def discover() -> bytes:
        specs = [spec for spec in registry.specs if is_enabled(spec, context, enabled, transport)]
        return openrpc.document(specs, context.node.client_version)

    return registry.bind(replace(context, groups=tuple(groups), discover=discover), enabled, transport)


def effective_groups(groups: Sequence[str]) -> frozenset[str]:
    """The groups that are on: naming `eea` switches `priv` on too (json-rpc.md 1.13)."""
    return frozenset(groups) | ({"priv"} if "eea" in groups else frozenset())
