"""Builds the JSON-RPC services of a node.

    context, settings -> method table -> dispatcher -> HttpService / WebSocketService

Each transport has its own method table, built once when the service starts. The table contains only the enabled groups,
so that requests need no group check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.dispatch.error_wording import ErrorWording
from ophion.rpc.dispatch.large_requests import LargeRequests
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.endpoints.health import Health
from ophion.rpc.endpoints.http import RpcApplication
from ophion.rpc.endpoints.method_access import MethodAccess
from ophion.rpc.endpoints.websocket import RpcMessageHandler
from ophion.rpc.methods import all_methods
from ophion.rpc.schema.answer_fields import AnswerFields
from ophion.rpc.schema.registry import HTTP, WEBSOCKET, Caller, MethodTable, is_enabled
from ophion.rpc.services.context import RpcContext
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.policy import Application, HttpLimits
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.replies import BAD_REQUEST, OK
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.rpc.transport.websocket.policy import WebSocketLimits
from ophion.rpc.transport.websocket.service import WebSocketService
from ophion.runtime.thread_pools import Lanes

if TYPE_CHECKING:
    import ssl

    from ophion.rpc.auth.auth_setup import AuthSetup

_DEFAULT_GROUPS: Final = ("eth", "net", "web3")


class RequestRecorder(Protocol):
    """Counts and times requests; implemented in ophion.metrics.requests."""

    def measured(self, table: MethodTable) -> MethodTable:
        """Return the method table with a counter and a timer for each method."""


class RpcSettings(Struct, frozen=True, kw_only=True):
    """Settings of JSON-RPC, common to both transports."""

    host: str = "127.0.0.1"
    port: int = 0
    groups: tuple[str, ...] = _DEFAULT_GROUPS
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1")
    max_batch: int = 1024
    timeout_s: float = 30.0
    max_response_bytes: int = 64 * 1024 * 1024
    wording: ErrorWording = ErrorWording.ORIGINAL
    fields: AnswerFields = AnswerFields.CURRENT
    auth: AuthSetup | None = None
    """Token issuer and login of the service; None if no token is required."""
    tls: ssl.SSLContext | None = None
    origins: tuple[str, ...] = ()
    """Origins of web pages that may call this service from a browser (CORS)."""
    shared: SharedResources = field(default_factory=SharedResources)
    heavy: LargeRequests = field(default_factory=LargeRequests)
    make_dispatcher: Callable[..., Dispatcher] = Dispatcher
    """Creates the dispatchers. A worker forwards some requests (node/rpc_workers)."""

    def dispatch_limits(self, lanes: Lanes, error_status: int = OK) -> DispatchLimits:
        """Return the limits of the dispatcher."""
        return DispatchLimits(
            self.max_batch,
            self.timeout_s,
            error_status,
            self.wording,
            self.max_response_bytes,
            scheduler=self.shared.scheduler,
            lane=lanes.parse,
            heavy=self.heavy,
        )

    def guarded(self, table: MethodTable, loop: asyncio.AbstractEventLoop, limits: DispatchLimits) -> MethodAccess:
        """Return the dispatcher of the methods in `table`, with an authenticator if tokens are required."""
        make = self.make_dispatcher
        authenticator = None if self.auth is None else self.auth.authenticator(table, loop, limits, make)
        return MethodAccess(make(table, loop, limits), self.auth, authenticator)


class HttpSettings(RpcSettings, frozen=True, kw_only=True):
    """Settings of JSON-RPC over HTTP."""

    port: int = 8545
    errors_as_400: bool = False
    limits: HttpLimits = field(default_factory=HttpLimits)

    @property
    def error_status(self) -> int:
        """Return the HTTP status of method errors."""
        return BAD_REQUEST if self.errors_as_400 else OK


class WebSocketSettings(RpcSettings, frozen=True, kw_only=True):
    """Settings of JSON-RPC over WebSocket."""

    port: int = 8546
    limits: WebSocketLimits = field(default_factory=WebSocketLimits)


def http_service(
    context: RpcContext, settings: HttpSettings, health: Health, measured: RequestRecorder | None = None
) -> HttpService:
    """Build the JSON-RPC service over HTTP; `measured` adds metrics to each method."""
    limits = settings.dispatch_limits(context.lanes, settings.error_status)

    def application(loop: asyncio.AbstractEventLoop) -> RpcApplication:
        table = http_methods(context, settings, measured)
        return RpcApplication(settings.guarded(table, loop, limits), health, context.endpoints)

    return http_listener(settings, application)


def http_methods(context: RpcContext, settings: HttpSettings, measured: RequestRecorder | None = None) -> MethodTable:
    """Return the methods of JSON-RPC over HTTP, with the fields of results that the settings choose."""
    return _with_fields(method_table(context, settings.groups, HTTP, measured), settings.fields)


def _with_fields(table: MethodTable, fields: AnswerFields) -> MethodTable:
    """Return a table whose methods answer with the chosen fields."""
    if fields is AnswerFields.CURRENT:
        return table
    # lazy import: few nodes answer with the fields of older clients
    from ophion.rpc.schema.older_response_fields import older_answers

    return older_answers(table, fields)


def http_listener(
    settings: HttpSettings, application: Callable[[asyncio.AbstractEventLoop], Application]
) -> HttpService:
    """Build the service of an application on the port of JSON-RPC over HTTP."""
    return HttpService(
        "JsonRPC service",
        settings.host,
        settings.port,
        HostList(settings.hosts),
        OriginList(settings.origins),
        settings.limits,
        application,
        settings.tls,
        settings.shared,
    )


def websocket_service(
    context: RpcContext, settings: WebSocketSettings, measured: RequestRecorder | None = None
) -> WebSocketService:
    """Build the JSON-RPC service with subscriptions over WebSocket."""
    limits = settings.dispatch_limits(context.lanes)

    def message_handler(loop: asyncio.AbstractEventLoop) -> RpcMessageHandler:
        table = _with_fields(method_table(context, settings.groups, WEBSOCKET, measured), settings.fields)
        return RpcMessageHandler(settings.guarded(table, loop, limits))

    return WebSocketService(
        "Websocket service",
        settings.host,
        settings.port,
        HostList(settings.hosts),
        OriginList(settings.origins),
        settings.limits,
        message_handler,
        _subscription_dropper(context),
        settings.tls,
        settings.shared,
    )


def _subscription_dropper(context: RpcContext) -> Callable[[Caller], None]:
    """Return a callback that drops the subscriptions of a closed connection."""
    private = context.private_subscriptions
    if private is None:
        return context.subscriptions.drop

    def drop(caller: Caller) -> None:
        context.subscriptions.drop(caller)
        private.drop(caller)

    return drop


def method_table(
    context: RpcContext, groups: Sequence[str], transport: str, measured: RequestRecorder | None = None
) -> MethodTable:
    """Return the method table of one transport. A disabled method only answers with its error."""
    enabled = effective_groups(groups)
    registry = all_methods()

    @cache
    def discover() -> bytes:
        from ophion.rpc.schema import openrpc  # lazy import: only `rpc.discover` needs this module

        specs = [spec for spec in registry.specs if is_enabled(spec, context, enabled, transport)]
        return openrpc.document(specs, context.node.client_version, context.node.compat)

    table = registry.bind(replace(context, groups=tuple(groups), discover=discover), enabled, transport)
    if context.dev is not None:
        # lazy import: few nodes fork another chain
        from ophion.rpc.services.fork_requests import forkable

        table = forkable(table, context)
        if context.has_preset:
            # lazy import: only nodes with a preset refuse what Anvil refuses
            from ophion.rpc.presets.anvil_refusals import with_refusals

            table = with_refusals(table, context)
        if context.is_anvil:
            # lazy import: other nodes refuse these forms
            from ophion.rpc.presets.anvil_forms import accept_anvil_forms

            table = accept_anvil_forms(table)
        if context.is_hardhat:
            # lazy import: only nodes with this preset answer in the forms of Hardhat's node
            from ophion.rpc.presets.hardhat_forms import like_hardhat

            table = like_hardhat(table, context)
    return table if measured is None else measured.measured(table)


def effective_groups(groups: Sequence[str]) -> frozenset[str]:
    """Return the enabled groups; `eea`, `priv` and `privx` enable each other (privacy.md 10)."""
    private = frozenset({"eea", "priv", "privx"})
    return frozenset(groups) | (private if private.intersection(groups) else frozenset())
