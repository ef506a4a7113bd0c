"""WebSocket service of the node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.listener import Listener
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.replies import Reply
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.rpc.transport.websocket.policy import GuardedMessageHandler, WebSocketLimits, WebSocketPolicy

if TYPE_CHECKING:
    import ssl

    from ophion.rpc.transport.websocket.connection import WebSocketConnection


class WebSocketService(Listener["WebSocketConnection"]):
    """Listens for WebSocket clients until it is cancelled."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        hosts: HostList,
        origins: OriginList,
        limits: WebSocketLimits,
        message_handler: Callable[[asyncio.AbstractEventLoop], GuardedMessageHandler],
        closed: Callable[[WebSocketConnection], None],
        tls: ssl.SSLContext | None = None,
        shared: SharedResources | None = None,
    ) -> None:
        super().__init__(name, host, port, limits.max_connections, tls, shared)
        self._hosts = hosts
        self._origins = origins
        self._limits = limits
        self._message_handler = message_handler
        self._closed = closed

    def handler(self) -> Callable[..., Reply]:
        """Return the function that answers messages, for another transport with the same methods."""
        self.prepare()
        assert self._begun is not None, "prepare begins the service"
        return cast(GuardedMessageHandler, self._begun[0]).handle

    def _begin(
        self, loop: asyncio.AbstractEventLoop
    ) -> tuple[GuardedMessageHandler, Callable[[], WebSocketConnection]]:
        # lazy import: this module is slow to import, and only nodes with WebSocket need it
        from ophion.rpc.transport.websocket.connection import WebSocketConnection

        message_handler = self._message_handler(loop)
        policy = WebSocketPolicy(
            message_handler,
            self._hosts,
            self._origins,
            self._limits,
            self.places.admit,
            self._forget,
            message_handler.login,
            message_handler.token_guard,
            self._shared,
        )
        return message_handler, lambda: WebSocketConnection(policy)

    def _forget(self, connection: WebSocketConnection) -> None:
        self.places.leave(connection)
        self._closed(connection)
