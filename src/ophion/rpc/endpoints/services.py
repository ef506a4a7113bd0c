"""The services of the interface, ready for the supervisor.

    context, settings -> method table -> dispatcher -> HttpService / WebSocketService

Each transport has its own method table, made once when the service starts: its groups are in it, and nothing is asked
about groups afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.endpoints.health import Health
from ophion.rpc.endpoints.http import RpcApplication
from ophion.rpc.endpoints.websocket import RpcConversations
from ophion.rpc.language import openrpc
from ophion.rpc.language.registry import HTTP, WEBSOCKET, Bound, is_enabled
from ophion.rpc.methods import all_methods
from ophion.rpc.questions.context import RpcContext
from ophion.rpc.transport.access import HostList, OriginList
from ophion.rpc.transport.http.policy import HttpLimits
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.replies import BAD_REQUEST, OK
from ophion.rpc.transport.websocket.policy import WebSocketLimits
from ophion.rpc.transport.websocket.service import WebSocketService

if TYPE_CHECKING:
    import ssl

    from ophion.rpc.auth.door import Door

_DEFAULT_GROUPS: Final = ("eth", "net", "web3")


class Measuring(Protocol):
    """Who counts and times requests (ophion.metrics.requests)."""

    def measured(self, table: Mapping[str, Bound]) -> dict[str, Bound]:
        """The same methods, measured."""


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
    max_response_bytes: int = 256 * 1024 * 1024
    errors_as_400: bool = False
    limits: HttpLimits = field(default_factory=HttpLimits)
    door: Door | None = None
    """None where no token is needed."""
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class WebSocketSettings:
    """How JSON-RPC is served over WebSocket."""

    host: str = "127.0.0.1"
    port: int = 8546
    groups: tuple[str, ...] = _DEFAULT_GROUPS
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1")
    max_batch: int = 1024
    timeout_s: float = 30.0
    max_response_bytes: int = 256 * 1024 * 1024
    limits: WebSocketLimits = field(default_factory=WebSocketLimits)
    door: Door | None = None
    tls: ssl.SSLContext | None = None


def http_service(
    context: RpcContext, settings: HttpSettings, health: Health, measured: Measuring | None = None
) -> HttpService:
    """JSON-RPC over HTTP; each method is measured where somebody wants to know."""
    status = BAD_REQUEST if settings.errors_as_400 else OK
    limits = DispatchLimits(settings.max_batch, settings.timeout_s, status, settings.max_response_bytes)

    def application(loop: asyncio.AbstractEventLoop) -> RpcApplication:
        table = method_table(context, settings.groups, HTTP, measured)
        gate = None if settings.door is None else settings.door.gate(table, loop, limits)
        return RpcApplication(Dispatcher(table, loop, limits), health, settings.door, gate)

    return HttpService(
        "JsonRPC service",
        settings.host,
        settings.port,
        HostList(settings.hosts),
        OriginList(settings.origins),
        settings.limits,
        application,
        settings.tls,
    )


def websocket_service(
    context: RpcContext, settings: WebSocketSettings, measured: Measuring | None = None
) -> WebSocketService:
    """JSON-RPC and subscriptions over WebSocket."""
    limits = DispatchLimits(settings.max_batch, settings.timeout_s, OK, settings.max_response_bytes)

    def conversations(loop: asyncio.AbstractEventLoop) -> RpcConversations:
        table = method_table(context, settings.groups, WEBSOCKET, measured)
        gate = None if settings.door is None else settings.door.gate(table, loop, limits)
        return RpcConversations(Dispatcher(table, loop, limits), settings.door, gate)

    return WebSocketService(
        "Websocket service",
        settings.host,
        settings.port,
        HostList(settings.hosts),
        settings.limits,
        conversations,
        context.subscriptions.drop,
        settings.tls,
    )


def method_table(
    context: RpcContext, groups: Sequence[str], transport: str, measured: Measuring | None = None
) -> dict[str, Bound]:
    """Every known method, bound to this context or to the answer that it is not enabled."""
    enabled = effective_groups(groups)
    registry = all_methods()

    @cache
    def discover() -> bytes:
        specs = [spec for spec in registry.specs if is_enabled(spec, context, enabled, transport)]
        return openrpc.document(specs, context.node.client_version)

    table = registry.bind(replace(context, groups=tuple(groups), discover=discover), enabled, transport)
    return table if measured is None else measured.measured(table)


def effective_groups(groups: Sequence[str]) -> frozenset[str]:
    """The groups that are on: naming `eea` switches `priv` on too (json-rpc.md 1.13)."""
    return frozenset(groups) | ({"priv"} if "eea" in groups else frozenset())
