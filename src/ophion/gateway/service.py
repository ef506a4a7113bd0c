"""The listener of a gateway, as a service of the supervisor."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.policy import HttpLimits, HttpPolicy
from ophion.rpc.transport.listener import Listener, ListenError
from ophion.rpc.transport.origins import PageOrigins
from ophion.rpc.transport.shared_resources import SharedResources

if TYPE_CHECKING:
    from ophion.gateway.backends import BackendNetwork
    from ophion.gateway.connection import GatewayConnection
    from ophion.gateway.routing import Page, PathRouter
    from ophion.gateway.tunnel import Tunnel

MAX_CONNECTIONS: Final = 8192
DEFAULT_PORT: Final = 8548
LIMITS: Final = HttpLimits(max_connections=MAX_CONNECTIONS)


class GatewayService(Listener["HttpConnection | Tunnel"]):
    """Listens for clients until it is cancelled.

    `site` is called for the first client, when the other services of the node have their ports. With port None the
    service listens on the default port, or on a free port if the default port is in use.
    """

    def __init__(
        self,
        site: Callable[[], BackendNetwork],
        page: Page,
        host: str = "127.0.0.1",
        port: int | None = None,
        hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
        limits: HttpLimits = LIMITS,
        shared: SharedResources | None = None,
        name: str = "Page service",
    ) -> None:
        super().__init__(name, host, DEFAULT_PORT if port is None else port, limits.max_connections, shared=shared)
        self._may_move = port is None
        self._site = site
        self._page = page
        self._hosts = hosts
        self._limits = limits

    def _begin(self, loop: asyncio.AbstractEventLoop) -> tuple[PathRouter, Callable[[], GatewayConnection]]:
        # import these modules at the first client, because most web interfaces are never opened
        from ophion.gateway.connection import GatewayConnection
        from ophion.gateway.routing import PathRouter
        from ophion.gateway.tunnel import TunnelSlots

        paths = PathRouter(self._site(), self._page, loop)
        policy = HttpPolicy(
            paths,
            HostList(self._hosts),
            PageOrigins((), self._hosts, lambda: self.port),
            self._limits,
            PlainHeads(),
            self.places.admit,
            self.places.leave,
            shared=self._shared,
        )
        openings = TunnelSlots()
        return paths, lambda: GatewayConnection(policy, paths, self._hand_over, openings)

    def _hand_over(self, connection: HttpConnection, tunnel: Tunnel) -> None:
        self.places.leave(connection)
        self.places.admit(tunnel)

    async def _bind(
        self, loop: asyncio.AbstractEventLoop, newcomer: Callable[[], asyncio.BaseProtocol]
    ) -> list[asyncio.Server]:
        try:
            return await super()._bind(loop, newcomer)
        except ListenError as error:
            cause = error.__cause__
            if not self._may_move or not isinstance(cause, OSError) or cause.errno != errno.EADDRINUSE:
                raise
        self.port = 0
        return await super()._bind(loop, newcomer)
