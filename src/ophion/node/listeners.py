"""Builds each service that has a port, with its authentication and TLS."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from ophion.errors import ConfigError
from ophion.node.config import NodeConfig
from ophion.node.security_options import AuthConfig, TlsConfig
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.endpoints.health import Health
from ophion.rpc.endpoints.services import HttpSettings, WebSocketSettings, http_service, websocket_service
from ophion.rpc.services.context import RpcContext
from ophion.rpc.transport.http.policy import HttpLimits
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.rpc.transport.websocket.policy import WebSocketLimits
from ophion.rpc.transport.websocket.service import WebSocketService
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.memory_budget import MemoryBudget
from ophion.runtime.supervisor import Service

if TYPE_CHECKING:
    import ssl

    from ophion.chain.chain import Chain
    from ophion.enclave.interface import Enclave
    from ophion.enclave_http.tessera_peers import TesseraPeers
    from ophion.gateway.service import GatewayService
    from ophion.metrics.node_metrics import NodeMetrics
    from ophion.metrics.otlp import OtlpService, OtlpSettings
    from ophion.metrics.push_gateway import PushService
    from ophion.metrics.requests import RequestMetrics
    from ophion.primitives.types import Address
    from ophion.rpc.auth.auth_setup import AuthSetup
    from ophion.rpc.transport.ipc import IpcService

PortService: TypeAlias = "HttpService | WebSocketService | GatewayService"

PAGE_CLIENTS: Final = 1024
"""Maximum number of connections to the web interface of one node."""
_MESSAGE_FRAMES: Final = 4
"""Maximum size of a WebSocket message, as a number of frames of maximum size."""


def auth_setup_for(config: AuthConfig) -> AuthSetup | None:
    """Build the authentication of a service. Returns None if the service has no authentication."""
    settings = config.settings()
    if settings is None:
        return None
    # lazy import: the package cryptography is slow to import, and few nodes need it
    from ophion.rpc.auth.auth_setup import AuthSetup

    return AuthSetup(settings)


def _tls(config: TlsConfig) -> ssl.SSLContext | None:
    settings = config.settings()
    if settings is None:
        return None
    # lazy import: few nodes speak TLS
    from ophion.rpc.tls.certificates import server_context

    return server_context(settings)


def http_limits(config: NodeConfig, max_body_bytes: int) -> HttpLimits:
    """Return the limits of an HTTP port."""
    limits = config.limits
    return HttpLimits(
        max_connections=config.http.max_connections,
        max_body_bytes=max_body_bytes,
        max_head_bytes=limits.max_header_bytes,
        read_timeout_s=limits.read_timeout_s,
        write_timeout_s=limits.write_timeout_s,
        idle_timeout_s=limits.idle_timeout_s,
    )


def json_rpc_port(
    config: NodeConfig,
    context: RpcContext,
    shared: SharedResources,
    measured: RequestMetrics | None,
    auth: AuthSetup | None,
) -> HttpService:
    """Build the service for JSON-RPC over HTTP."""
    table = None if context.peers is None else context.peers.peers
    health = Health(
        context.sync_status,
        None if table is None else table.__len__,
        lambda: context.mining.vote_store_problem,
    )
    return http_service(context, json_rpc_settings(config, shared, auth), health, measured)


def json_rpc_settings(
    config: NodeConfig,
    shared: SharedResources,
    auth: AuthSetup | None,
    make_dispatcher: Callable[..., Dispatcher] = Dispatcher,
) -> HttpSettings:
    """Return the settings of JSON-RPC over HTTP."""
    http, access, limits = config.http, config.access, config.limits
    return HttpSettings(
        host=http.host,
        port=http.port,
        groups=tuple(group.value for group in http.groups),
        hosts=access.host_allow_list,
        origins=http.cors_origins,
        max_batch=http.max_batch_size,
        timeout_s=limits.timeout_s,
        errors_as_400=http.errors_as_400,
        max_response_bytes=limits.max_response_bytes,
        wording=access.error_wording,
        fields=access.answer_fields,
        limits=http_limits(config, max_body_bytes=http.max_content_length),
        auth=auth,
        tls=_tls(config.http_tls),
        shared=shared,
        make_dispatcher=make_dispatcher,
    )


def share_port(http: PortService, websocket: PortService) -> None:
    """Also accept WebSocket clients on the port of JSON-RPC over HTTP, if neither service uses TLS."""
    from ophion.rpc.transport.websocket.upgrade import UpgradableConnection

    assert isinstance(http, HttpService)
    assert isinstance(websocket, WebSocketService)
    if not http.is_encrypted and not websocket.is_encrypted:
        http.make_connection = lambda policy: UpgradableConnection(policy, lambda: websocket.prepare()())


def ipc_service(config: NodeConfig, context: RpcContext, websocket: PortService) -> IpcService:
    """Build the service on a Unix socket, with the methods and the subscriptions of WebSocket."""
    from ophion.rpc.transport.ipc import IpcService

    assert isinstance(websocket, WebSocketService)
    assert config.dev.ipc_path is not None, "the caller checks it"
    most = max(config.http.max_content_length, config.websocket.max_frame_size or 0)
    return IpcService(
        config.dev.ipc_path, websocket.handler, context.subscriptions.drop, most, config.limits.max_unread_bytes
    )


def graphql_port(
    config: NodeConfig, context: RpcContext, shared: SharedResources, auth: AuthSetup | None
) -> HttpService:
    """Build the GraphQL service."""
    # lazy import: this module loads a schema and reads files
    from ophion.graphql.service import GraphqlSettings, graphql_service

    graphql, wanted, access, limits = config.graphql, config.graphql_limits, config.access, config.limits
    settings = GraphqlSettings(
        host=graphql.host,
        port=graphql.port,
        hosts=access.host_allow_list,
        origins=graphql.cors_origins,
        timeout_s=limits.timeout_s if wanted.timeout_s is None else wanted.timeout_s,
        limits=wanted,
        http=http_limits(config, max_body_bytes=wanted.max_body_bytes),
        auth=auth,
        tls=_tls(config.graphql_tls),
        shared=shared,
    )
    return graphql_service(context, settings)


def websocket_port(
    config: NodeConfig, context: RpcContext, shared: SharedResources, measured: RequestMetrics | None
) -> WebSocketService:
    """Build the service for JSON-RPC over WebSocket."""
    websocket, access, limits = config.websocket, config.access, config.limits
    frame = websocket.max_frame_size or config.http.max_content_length
    settings = WebSocketSettings(
        host=websocket.host,
        port=websocket.port,
        groups=tuple(group.value for group in websocket.groups),
        hosts=access.host_allow_list,
        max_batch=config.http.max_batch_size,
        timeout_s=limits.timeout_s,
        limits=WebSocketLimits(
            max_connections=websocket.max_connections,
            max_frame_bytes=frame,
            max_message_bytes=max(frame, min(_MESSAGE_FRAMES * frame, config.http.max_content_length)),
            max_unread_bytes=limits.max_unread_bytes,
            write_timeout_s=limits.write_timeout_s,
        ),
        max_response_bytes=limits.max_response_bytes,
        wording=access.error_wording,
        fields=access.answer_fields,
        auth=auth_setup_for(config.websocket_auth),
        tls=_tls(config.websocket_tls),
        origins=websocket.cors_origins or config.http.cors_origins,
        shared=shared,
    )
    return websocket_service(context, settings, measured)


def metrics_port(config: NodeConfig, metrics: NodeMetrics, shared: SharedResources) -> HttpService:
    """Build the service from which Prometheus reads metrics."""
    from ophion.metrics.server import metrics_service

    metrics.declare()
    return metrics_service(
        metrics.registry, config.metrics, config.access.host_allow_list, _tls(config.metrics_tls), shared
    )


def metrics_push(config: NodeConfig, metrics: NodeMetrics) -> PushService:
    """Build the service that pushes metrics to a push gateway."""
    from ophion.metrics.push_gateway import PushService

    metrics.declare()
    return PushService(metrics.registry, config.metrics)


def otlp_settings() -> OtlpSettings | None:
    """Return the settings of the `OTEL_*` variables, or None if no variable names a collector. Raises `ConfigError` for
    bad values.
    """
    if not any(name.startswith("OTEL_") for name in os.environ):
        return None
    # lazy import: only nodes that export to an OpenTelemetry collector need this module
    from ophion.metrics.otlp import read_otlp_settings

    try:
        return read_otlp_settings(os.environ)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def otlp_export(
    config: NodeConfig,
    settings: OtlpSettings,
    metrics: NodeMetrics,
    chain: Chain,
    clock: Clock,
    entropy: Entropy,
    node: Address,
) -> OtlpService:
    """Build the service that sends metrics and spans to an OpenTelemetry collector."""
    from ophion.metrics.otlp import OtlpService

    metrics.declare()
    categories = frozenset(config.metrics.categories)
    return OtlpService(settings, metrics.registry, categories, chain, clock, entropy, node)


def tools_port(config: NodeConfig, enclave: Enclave, port: int, shared: SharedResources) -> HttpService:
    """Build the HTTP service of the embedded enclave for tools and other nodes."""
    from ophion.enclave.embedded import EmbeddedEnclave
    from ophion.enclave_http.application import enclave_service

    assert isinstance(enclave, EmbeddedEnclave), "the options do not serve one outside"
    return enclave_service(enclave, config.enclave.http_host, port, config.access.host_allow_list, shared)


def enclaves_port(
    config: NodeConfig,
    enclave: Enclave,
    port: int,
    clock: Clock,
    entropy: Entropy,
    shared: SharedResources,
    tessera: TesseraPeers | None,
) -> HttpService:
    """Build the service for enclaves of nodes that are not peers. Its clients have a memory budget of their own."""
    from ophion.enclave.embedded import EmbeddedEnclave
    from ophion.enclave_http.peer_application import MAX_HELD_BYTES, peer_service

    assert isinstance(enclave, EmbeddedEnclave), "the options do not serve one outside"
    own = replace(shared, budget=MemoryBudget(min(MAX_HELD_BYTES, config.limits.max_held_bytes)))
    return peer_service(enclave, config.enclave.peer_host, port, clock, entropy, own, tessera)


def distant_enclaves(config: NodeConfig, enclave: Enclave, clock: Clock, entropy: Entropy) -> Service:
    """Build the service that connects to enclaves of nodes that are not peers."""
    from ophion.enclave.embedded import EmbeddedEnclave
    from ophion.enclave_http.http_peers import HttpEnclavePeers

    assert isinstance(enclave, EmbeddedEnclave), "the options do not serve one outside"
    return HttpEnclavePeers(config.enclave.peer_urls, enclave, clock, entropy)


def tessera_enclaves(config: NodeConfig, enclave: Enclave, entropy: Entropy) -> TesseraPeers:
    """Build the service that connects to members with Tessera."""
    from ophion.enclave.embedded import EmbeddedEnclave
    from ophion.enclave_http.tessera_peers import TesseraPeers

    assert isinstance(enclave, EmbeddedEnclave), "the options do not serve one outside"
    assert config.enclave.tessera_url is not None, "the options need each other"
    return TesseraPeers(config.enclave.tessera_peers, config.enclave.tessera_url, enclave, entropy)
