"""Base class of services with a port: accepts connections, runs their timer, and closes them at stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from ophion.errors import OphionError
from ophion.rpc.transport.connection_slots import ConnectionSlots, SlotHolder
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.options.values import hosts_of
from ophion.runtime.port_in_use import is_taken, taken

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

_TICK_S: Final = 5.0
_TICKED: Final = 128
"""Maximum number of connections that check their timeouts in one iteration of the event loop. A timed-out connection
closes its socket, which takes time.
"""
_LISTEN_DESCRIPTORS: Final = 32
"""Number of connections accepted in each iteration of the loop. libuv accepts one per listening descriptor, so the
socket has several descriptors. With one descriptor, a burst of connections would delay all other clients.
"""
_TLS_LISTEN_DESCRIPTORS: Final = 4
"""Number of TLS connections accepted in each iteration of the loop. Each handshake delays open connections by a
millisecond.
"""
_ACCEPT_PAUSE_S: Final = 0.5
"""Pause in seconds after a connection that could not be accepted."""
_BACKLOG: Final = 4096
"""Maximum connections that the kernel queues. A client above this limit retries after a second."""
_RECEIVED_BYTES: Final = 64 * 1024
"""Size of the receive buffer of a socket, and so of one read. The size bounds the memory that thousands of fast senders
can fill in one iteration of the event loop.
"""
_SENT_BYTES: Final = 128 * 1024
"""Send buffer of a socket. The system default would grow to megabytes for a client that does not read."""


class ListenError(OphionError):
    """Raised when a service cannot listen on its configured address."""

    def __init__(self, service: str, host: str, port: int, reason: str) -> None:
        self.service = service
        self.host = host
        self.port = port
        super().__init__(f"{service} cannot listen on {host}:{port}: {reason}")


class ServedConnection(SlotHolder, Protocol):
    """Interface of a client connection, as its service uses it."""

    def tick(self, seconds: float) -> None:
        """Check timeouts; `seconds` have passed since the last call."""

    def close(self) -> None:
        """Close the connection, because the service stops."""


class ClosableApplication(Protocol):
    """Interface of the application that answers the requests of a service."""

    def close(self) -> None:
        """Release resources, because the service stops."""


ConnectionT = TypeVar("ConnectionT", bound=ServedConnection)


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
        """The configured port; after the service is ready, the actual port."""
        self.places: ConnectionSlots[ConnectionT] = ConnectionSlots(name, max_connections)
        self.offer: Callable[[socket.socket], bool] | None = None
        """Offers each new connection to other processes. Returns whether another process has taken the connection."""
        self.is_fed = False
        """Whether connections come from another process (`adopt`), so that this service does not listen."""
        self.on_open: Callable[[], None] | None = None
        """Called when the service has begun to accept clients."""
        self.waits_to_open = False
        """Whether to accept clients only after `open`, so that several services can open at the same time."""
        self._tls = tls
        self._shared = shared or SharedResources()
        self._servers: list[asyncio.Server] = []
        self._bound: Sequence[socket.socket] = ()
        """One socket for each address on which the service listens."""
        self._shared_sockets: list[socket.socket] = []
        """Listening sockets whose connections are offered to other processes."""
        self._factory: Callable[[], asyncio.BaseProtocol] | None = None
        self._adopted = 0
        self._adopting: set[asyncio.Task[Any]] = set()
        self._begun: tuple[ClosableApplication, Callable[[], asyncio.BaseProtocol]] | None = None

    @property
    def is_encrypted(self) -> bool:
        """Whether clients must use TLS."""
        return self._tls is not None

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until cancelled. Then stop listening, close every connection and drop waiting requests."""
        self._servers = await self._bind(asyncio.get_running_loop(), lambda: self.prepare()())
        if not self.is_fed:
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
            for listening in self._shared_sockets:
                asyncio.get_running_loop().remove_reader(listening)
                listening.close()
            for server in self._servers:
                server.close()
            for connection in self.places:
                connection.close()
            if self._begun is not None:
                self._begun[0].close()

    def prepare(self) -> Callable[[], asyncio.BaseProtocol]:
        """Build the application now instead of at the first connection. Returns the connection factory."""
        if self._begun is None:
            self._begun = self._begin(asyncio.get_running_loop())
        return self._begun[1]

    async def open(self) -> None:
        """Start to accept clients on the bound port."""
        if self.is_fed:
            return
        assert self._servers, "a service is opened once it is ready"
        try:
            if self.offer is not None:
                self._share(self.offer)
            else:
                for server in self._servers:
                    await server.start_serving()
        except OSError as error:
            raise self._listen_error(error) from error
        logger.info("%s started and listening on %s:%d", self.name, self.host, self.port)
        if self.on_open is not None:
            self.on_open()

    def adopt(self, connection: socket.socket) -> None:
        """Serve a connection that has been accepted already."""
        assert self._factory is not None, "a service adopts connections once it is ready"
        self._adopted += 1
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.connect_accepted_socket(self._factory, connection))

        def finish(done: asyncio.Task[Any]) -> None:
            self._adopting.discard(done)
            if done.cancelled() or done.exception() is not None:  # the client has disconnected already
                connection.close()

        self._adopting.add(task)
        task.add_done_callback(finish)

    @property
    def connections(self) -> int:
        """Number of connections, including those that `adopt` is about to serve."""
        return len(self.places) + len(self._adopting)

    @property
    def adopted_and_closed(self) -> int:
        """Number of closed connections. Correct only if all connections come from `adopt`."""
        return self._adopted - self.connections

    def _share(self, offer: Callable[[socket.socket], bool]) -> None:
        """Accept connections here and offer them to other processes."""
        loop = asyncio.get_running_loop()

        def resume(listening: socket.socket) -> None:
            if listening.fileno() >= 0:
                loop.add_reader(listening, accept, listening)

        def accept(listening: socket.socket) -> None:
            for _ in range(_LISTEN_DESCRIPTORS):
                try:
                    connection, _ = listening.accept()
                except (BlockingIOError, ConnectionError):
                    return
                except OSError:  # no free descriptor: connections wait in the kernel
                    loop.remove_reader(listening)
                    loop.call_later(_ACCEPT_PAUSE_S, resume, listening)
                    return
                if offer(connection):
                    connection.close()
                else:
                    self.adopt(connection)

        for bound in self._bound:
            listening = socket.socket(fileno=os.dup(bound.fileno()))
            listening.setblocking(False)
            listening.listen(_BACKLOG)
            self._shared_sockets.append(listening)
            loop.add_reader(listening, accept, listening)

    @abstractmethod
    def _begin(self, loop: asyncio.AbstractEventLoop) -> tuple[ClosableApplication, Callable[[], asyncio.BaseProtocol]]:
        """Return the application and the connection factory. Called once, at the first connection."""

    async def _bind(
        self, loop: asyncio.AbstractEventLoop, factory: Callable[[], asyncio.BaseProtocol]
    ) -> list[asyncio.Server]:
        """Bind the port without accepting clients. Raises `ListenError` with a one-line reason."""
        try:
            if self._tls is not None:
                # lazy import: services without TLS do not need the ssl module
                from ophion.rpc.tls.handshakes import Handshakes

                factory = Handshakes(self._tls, factory, self._shared.scheduler, service=self.name).newcomer
            self._factory = factory
            if self.is_fed:
                return []
            servers: list[asyncio.Server] = []
            port = self.port
            for name in hosts_of(self.host):
                # pass the host as bytes to avoid the idna codec, which is slow to import
                host: Any = [name.encode()] if name.isascii() and name else name
                servers.append(await loop.create_server(factory, host, port, backlog=_BACKLOG, start_serving=False))
                port = port or servers[0].sockets[0].getsockname()[1]
            self._bound = [one for server in servers for one in server.sockets]
            for listening in self._bound:
                for number in range(_LISTEN_DESCRIPTORS if self._tls is None else _TLS_LISTEN_DESCRIPTORS):
                    one = socket.socket(fileno=os.dup(listening.fileno()))
                    if number == 0:
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SENT_BYTES)
                    servers.append(await loop.create_server(factory, sock=one, backlog=_BACKLOG, start_serving=False))
            return servers
        except OSError as error:
            raise self._listen_error(error) from error

    def _listen_error(self, error: OSError) -> ListenError:
        """Return the error with the kernel's text, because asyncio's text repeats the address."""
        if is_taken(error):
            reason = taken()
        else:
            number = error.errno or 0
            reason = os.strerror(number) if number > 0 else error.strerror or str(error)
        return ListenError(self.name, self.host, self.port, reason)
