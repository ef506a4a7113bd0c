"""HTTP service. JSON-RPC, GraphQL and metrics are applications that run on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.policy import Application, HttpLimits, HttpPolicy, TokenGuard
from ophion.rpc.transport.listener import Listener
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.shared_resources import SharedResources

if TYPE_CHECKING:
    import ssl


class HttpService(Listener[HttpConnection]):
    """Listens for HTTP clients until it is cancelled."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        hosts: HostList,
        origins: OriginList,
        limits: HttpLimits,
        application: Callable[[asyncio.AbstractEventLoop], Application],
        tls: ssl.SSLContext | None = None,
        shared: SharedResources | None = None,
    ) -> None:
        super().__init__(name, host, port, limits.max_connections, tls, shared)
        self._hosts = hosts
        self._origins = origins
        self._limits = limits
        self._make_application = application
        self._running: Application | None = None
        self.make_connection: Callable[[HttpPolicy], HttpConnection] = HttpConnection
        """Connection factory. A development node replaces the factory to accept WebSocket clients on the same port."""

    def application(self) -> Application:
        """Return the application that answers the requests of this service."""
        self.prepare()
        assert self._running is not None
        return self._running

    def _begin(self, loop: asyncio.AbstractEventLoop) -> tuple[Application, Callable[[], HttpConnection]]:
        application = self._running = self._make_application(loop)
        # only applications that require tokens have a guard
        guard: TokenGuard | None = getattr(application, "token_guard", None)
        policy = HttpPolicy(
            application,
            self._hosts,
            self._origins,
            self._limits,
            PlainHeads(),
            self.places.admit,
            self.places.leave,
            guard,
            self._shared,
        )
        make = self.make_connection
        return application, lambda: make(policy)
