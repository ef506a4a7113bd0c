"""What every service with a port does: listen, keep track of its connections, let time pass for them, stop in order."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from ophion.errors import OphionError
from ophion.rpc.transport.connection_slots import ConnectionSlots, SlotHolder
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.port_in_use import is_taken, taken

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

_TICK_S: Final = 5.0
_TICKED: Final = 128  # in one turn of the loop: each looks at its socket, or ends
_DOORS: Final = 32
"""How many newcomers are let in in each turn of the loop: libuv accepts one for each socket that listens, so there are
several descriptors of the same one. With a single one a crowd that comes at once would keep everybody else waiting."""
_TLS_DOORS: Final = 4
"""The same where each newcomer costs a millisecond: a crowd of them must not make those wait who are in already."""
_BACKLOG: Final = 4096
"""Connections that the system keeps until the loop looks at them; where there is no place, a client waits a second."""
_RECEIVED_BYTES: Final = 64 * 1024
"""What the system keeps of a client that is not read from, and so what arrives at a time: some thousand clients that
send as fast as they can must not fill the memory in a single turn of the loop."""
_SENT_BYTES: Final = 128 * 1024
"""What the system keeps for a client that does not read; left to itself it would be megabytes for each."""


class ListenError(OphionError):
    """A service cannot listen where it should."""

    def __init__(self, service: str, host: str, port: int, reason: str) -> None:
        self.service = service
        self.host = host
        self.port = port
        super().__init__(f"{service} cannot listen on {host}:{port}: {reason}")


class Connection(SlotHolder, Protocol):
    """One client, as far as its service is concerned."""

    def tick(self, seconds: float) -> None:
        """Some time has passed."""

    def close(self) -> None:
        """The service stops."""


class Closing(Protocol):
    """What stands behind the connections of a service."""

    def close(self) -> None:
        """The service stops."""


ConnectionT = TypeVar("ConnectionT", bound=Connection)


class Listener(ABC, Generic[ConnectionT]):
    """Listens for clients until it is cancelled."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        max_connections: int,
        tls: ssl.SSLContext | None = None,
        shared: SharedResources | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        """The configured port; once the service is ready, the actual one."""
        self.places: ConnectionSlots[ConnectionT] = ConnectionSlots(name, max_connections)
        self.waits_to_open = False
        """Whether clients are let in when `open` says so and not before: several services open at the same moment."""
        self._tls = tls
        self._shared = shared or SharedResources()
        self._servers: list[asyncio.Server] = []
        self._begun: tuple[Closing, Callable[[], asyncio.BaseProtocol]] | None = None

    @property
    def is_encrypted(self) -> bool:
        """Whether clients must speak TLS."""
        return self._tls is not None

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve; cancelling stops listening, closes every connection and drops waiting requests."""
        self._servers = await self._bind(asyncio.get_running_loop(), lambda: self.prepare()())
        self.port = self._servers[0].sockets[0].getsockname()[1]
        if not self.waits_to_open:
            await self.open()
        ready()
        try:
            while True:
                await asyncio.sleep(_TICK_S)
                for number, connection in enumerate(self.places):
                    if number % _TICKED == 0:
                        await asyncio.sleep(0)
                    if connection in self.places:
                        connection.tick(_TICK_S)
        finally:
            for server in self._servers:
                server.close()
            for connection in self.places:
                connection.close()
            if self._begun is not None:
                self._begun[0].close()

    def prepare(self) -> Callable[[], asyncio.BaseProtocol]:
        """Make and load what serves clients; otherwise the first of them waits for it. Gives what makes connections."""
        if self._begun is None:
            self._begun = self._begin(asyncio.get_running_loop())
        return self._begun[1]

    async def open(self) -> None:
        """Let clients in; the port is taken already."""
        assert self._servers, "a service is opened once it is ready"
        try:
            for server in self._servers:
                await server.start_serving()
        except OSError as error:
            raise self._refused(error) from error
        logger.info("%s started and listening on %s:%d", self.name, self.host, self.port)

    @abstractmethod
    def _begin(self, loop: asyncio.AbstractEventLoop) -> tuple[Closing, Callable[[], asyncio.BaseProtocol]]:
        """What the service does, and what makes a connection to it; asked once, when somebody comes."""

    async def _bind(
        self, loop: asyncio.AbstractEventLoop, newcomer: Callable[[], asyncio.BaseProtocol]
    ) -> list[asyncio.Server]:
        """A port of one's own that lets nobody in yet; `ListenError` says in one line why there is none."""
        try:
            if self._tls is not None:
                # loads the ssl module, which other services are spared
                from ophion.rpc.tls.handshakes import Handshakes

                newcomer = Handshakes(self._tls, newcomer, self._shared.turns, service=self.name).newcomer
            # as bytes, which need no look into the rules of international names
            host: Any = [self.host.encode()] if self.host.isascii() and self.host else self.host
            first = await loop.create_server(newcomer, host, self.port, backlog=_BACKLOG, start_serving=False)
            servers = [first]
            for listening in first.sockets:
                for number in range(_DOORS if self._tls is None else _TLS_DOORS):
                    one = socket.socket(fileno=os.dup(listening.fileno()))
                    if number == 0:
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SENT_BYTES)
                    servers.append(await loop.create_server(newcomer, sock=one, backlog=_BACKLOG, start_serving=False))
            return servers
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> ListenError:
        """The system's own words: those of asyncio repeat the address."""
        if is_taken(error):
            reason = taken()
        else:
            number = error.errno or 0
            reason = os.strerror(number) if number > 0 else error.strerror or str(error)
        return ListenError(self.name, self.host, self.port, reason)
