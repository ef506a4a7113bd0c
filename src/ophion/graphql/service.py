"""The GraphQL service, run by the supervisor."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from ophion.graphql.limits import GraphqlLimits
from ophion.native.graphql import GraphqlEngine
from ophion.rpc.services.context import RpcContext
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.policy import HttpLimits
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.origins import PageOrigins
from ophion.rpc.transport.shared_resources import SharedResources

if TYPE_CHECKING:
    import ssl

    from ophion.graphql.http import GraphqlApplication
    from ophion.rpc.auth.auth_setup import AuthSetup


class GraphqlSettings(Struct, frozen=True):
    """Settings of the GraphQL service."""

    host: str = "127.0.0.1"
    port: int = 8547
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1")
    origins: tuple[str, ...] = ()
    timeout_s: float = 30.0
    limits: GraphqlLimits = field(default_factory=GraphqlLimits)
    http: HttpLimits = field(default_factory=HttpLimits)
    """Limits of connections. The maximum body size comes from `GraphqlLimits`."""
    auth: AuthSetup | None = None
    """Authentication of JSON-RPC, if it is on. GraphQL requires the same tokens, so that clients cannot bypass the
    authentication of JSON-RPC.
    """
    tls: ssl.SSLContext | None = None
    shared: SharedResources = field(default_factory=SharedResources)


_NO_LIMIT: Final = 2**63 - 1


def schema_text() -> str:
    """Return the schema file of the package."""
    return (Path(__file__).parent / "schema.graphql").read_text(encoding="utf-8")


def graphql_engine(context: RpcContext, limits: GraphqlLimits) -> GraphqlEngine:
    """Create the GraphQL engine of the Rust extension for the chain of this node."""
    return GraphqlEngine(
        schema_text(),
        chain_id=context.queries.spec.chain_id,
        protocol_version=context.node.protocol_version,
        shows_hex=limits.hex_integers,
        max_tokens=limits.max_tokens,
        max_depth=limits.max_depth,
        max_fields=limits.max_fields,
        max_cost=limits.max_cost,
        max_bytes=limits.max_answer_bytes,
        max_blocks=limits.max_blocks or _NO_LIMIT,
        max_calls=limits.max_calls,
        max_logs_range=context.limits.max_logs_range,
        max_logs=limits.max_logs,
    )


def graphql_service(context: RpcContext, settings: GraphqlSettings) -> HttpService:
    """Create the service for GraphQL over HTTP."""

    def application(loop: asyncio.AbstractEventLoop) -> GraphqlApplication:
        # lazy import: most nodes have no GraphQL clients
        from ophion.graphql.http import GraphqlApplication

        engine = graphql_engine(context, settings.limits)
        if settings.auth is None:
            return GraphqlApplication(context, engine, loop, settings.timeout_s, settings.limits)
        may, login = settings.auth.authenticator(None, loop).may, settings.auth.login
        return GraphqlApplication(context, engine, loop, settings.timeout_s, settings.limits, may, login)

    limits = replace(settings.http, max_body_bytes=settings.limits.max_body_bytes)
    hosts = HostList(settings.hosts)
    origins = PageOrigins(settings.origins, settings.hosts, lambda: service.port, settings.tls is not None)
    service = HttpService(
        "GraphQL service",
        settings.host,
        settings.port,
        hosts,
        origins,
        limits,
        application,
        settings.tls,
        settings.shared,
    )
    return service
