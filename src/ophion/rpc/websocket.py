"""The WebSocket service: listens and keeps track of its clients (`websocket_connection`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ophion.rpc.access import HostList
from ophion.rpc.dispatcher import Dispatcher, DispatchLimits
from ophion.rpc.places import Places
from ophion.rpc.registry import Bound
from ophion.rpc.server import listen

if TYPE_CHECKING:
    import ssl

    from ophion.rpc.auth.door import Door
    from ophion.rpc.websocket_connection import WebSocketConnection

logger = logging.getLogger(__name__)

_TICK_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class WebSocketLimits:
    """What the service allows its clients."""

    max_connections: int = 4096
    """When there are as many, the idlest gives way to a newcomer."""
    max_frame_bytes: int = 1024 * 1024
    max_message_bytes: int = 4 * 1024 * 1024
    max_unread_bytes: int = 4 * 1024 * 1024
    """Notifications a client may leave unread before it is cut off."""
    max_unread_bytes_in_all: int = 128 * 1024 * 1024
    """What all clients that are behind may leave unread together; each has its share."""
    handshake_timeout_s: float = 10.0
    """A client that connects must have said what it wants after this time."""
    write_timeout_s: float = 30.0
    """A client must begin to take what is sent to it in this time."""
    silence_timeout_s: float = 120.0
    """A client that sends nothing, not even an answer to a ping, is gone after this time."""


class WebSocketService:
    """Listens for WebSocket clients until it is cancelled."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        hosts: HostList,
        limits: WebSocketLimits,
        table: Callable[[], Mapping[str, Bound]],
        requests: DispatchLimits,
        closed: Callable[[WebSocketConnection], None],
        door: Door | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        """The configured port; once the service is ready, the actual one."""
        self._hosts = hosts
        self._limits = limits
        self._table = table
        self._requests = requests
        self._closed = closed
        self._door = door
        self._tls = tls
        self.places: Places[WebSocketConnection] = Places(name, limits.max_connections)

    @property
    def is_encrypted(self) -> bool:
        """Whether clients must speak TLS."""
        return self._tls is not None

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve; cancelling says goodbye to every client."""
        # wsproto takes longer to load than the rest of the interface to start: only nodes that need it wait for it
        from ophion.rpc.websocket_connection import WebSocketConnection, WebSocketPolicy

        loop = asyncio.get_running_loop()
        table, door = self._table(), self._door
        dispatcher = Dispatcher(table, loop, self._requests)
        gate = None if door is None else door.gate(table, loop, self._requests)
        policy = WebSocketPolicy(dispatcher, self._hosts, self._limits, self.places.admit, self._forget, door, gate)
        server = await listen(self.name, loop, lambda: WebSocketConnection(policy), self.host, self.port, self._tls)
        self.port = server.sockets[0].getsockname()[1]
        logger.info("%s started and listening on %s:%d", self.name, self.host, self.port)
        ready()
        try:
            while True:
                await asyncio.sleep(_TICK_S)
                for connection in self.places:
                    connection.tick(_TICK_S)
        finally:
            server.close()
            for connection in self.places:
                connection.close()
            dispatcher.close()
            if gate is not None:
                gate.close()
            if door is not None:
                door.close()

    def _forget(self, connection: WebSocketConnection) -> None:
        self.places.leave(connection)
        self._closed(connection)
