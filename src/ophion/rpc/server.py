"""The HTTP service: listens, keeps track of its connections, and knows the paths of the JSON-RPC endpoint.

HttpService     any HTTP service of the node: limits, timeouts, orderly stop; GraphQL and metrics can use it too
RpcApplication  `POST /` to the dispatcher, `GET /` for load balancers, `/liveness`, `/readiness` (json-rpc.md
1.1, 1.8)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from ophion.errors import OphionError
from ophion.rpc.access import HostList, OriginList
from ophion.rpc.dispatcher import Dispatcher, Reply
from ophion.rpc.health import Health
from ophion.rpc.http_connection import Application, Guard, HttpConnection, HttpLimits, HttpPolicy, PlainHeads, Result
from ophion.rpc.http_wire import JSON, Request, Response
from ophion.rpc.places import Places

if TYPE_CHECKING:
    import ssl

    from ophion.rpc.auth.door import Door

logger = logging.getLogger(__name__)

_TICK_S: Final = 5.0
_BACKLOG: Final = 1024
_TLS_HANDSHAKE_S: Final = 10.0
_UP: Final = Response(200, (b'{"status":"UP"}',), JSON)
_DOWN: Final = Response(503, (b'{"status":"DOWN"}',), JSON)


class ListenError(OphionError):
    """A service cannot listen where it should."""

    def __init__(self, service: str, host: str, port: int, reason: str) -> None:
        self.service = service
        self.host = host
        self.port = port
        super().__init__(f"{service} cannot listen on {host}:{port}: {reason}")


class RpcApplication:
    """JSON-RPC over HTTP; with a door, for those who have a token."""

    def __init__(self, dispatcher: Dispatcher, health: Health, door: Door | None = None) -> None:
        self.plain: Callable[[bytes], Reply] | None = dispatcher.handle if door is None else None
        self.token_guard: Guard | None = None if door is None else door.gate
        self._dispatcher = dispatcher
        self._health = health
        self._door = door

    def respond(self, request: Request) -> Result:
        """Everything but `POST /`."""
        if request.path == b"/liveness" and request.method == b"GET":
            return _UP
        if request.path == b"/readiness" and request.method == b"GET":
            return _UP if self._is_ready(request.query) else _DOWN
        if request.path == b"/login" and request.method == b"POST":
            if self._door is not None:
                return self._door.login(request.body)
            return Response(400, reason=b"Authentication not enabled")
        if request.path != b"/":
            return Response(404)
        if request.method == b"GET":
            return Response(201)
        return Response(405, headers=b"Allow: GET, POST, OPTIONS\r\n")

    def close(self) -> None:
        """Give up what is still waiting."""
        self._dispatcher.close()
        if self._door is not None:
            self._door.close()

    def _is_ready(self, query: bytes) -> bool:
        fields = parse_qs(query.decode("latin-1"), keep_blank_values=True)
        try:
            return self._health.is_ready(
                min_peers=int(fields.get("minPeers", ["1"])[-1]),
                max_blocks_behind=int(fields.get("maxBlocksBehind", ["2"])[-1]),
            )
        except ValueError:
            return False


class HttpService:
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
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        """The configured port; once the service is ready, the actual one."""
        self._hosts = hosts
        self._origins = origins
        self._limits = limits
        self._application = application
        self._tls = tls
        self._guard: Guard | None = None
        self.places: Places[HttpConnection] = Places(name, limits.max_connections)

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve; cancelling stops listening, drops waiting requests and closes every connection."""
        loop = asyncio.get_running_loop()
        application = self._application(loop)
        # only an application that asks for tokens has one
        self._guard = getattr(application, "token_guard", None)
        policy = HttpPolicy(
            application,
            self._hosts,
            self._origins,
            self._limits,
            PlainHeads(),
            self.places.admit,
            self.places.leave,
            self._guard,
        )
        server = await listen(self.name, loop, lambda: HttpConnection(policy), self.host, self.port, self._tls)
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
            application.close()

    def may(self, authorization: bytes | None, method: str) -> bool:
        """Whether a request with this `Authorization` header may use a method, for interfaces beside this one.

        For those who ask where tokens are needed: while the service does not run, nothing is permitted.
        """
        return self._guard is not None and self._guard.may(authorization, method)


async def listen(
    name: str,
    loop: asyncio.AbstractEventLoop,
    factory: Callable[[], asyncio.BaseProtocol],
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
) -> asyncio.Server:
    """A listening socket; `ListenError` says in one line why there is none."""
    try:
        if tls is not None:
            return await loop.create_server(
                factory, host, port, backlog=_BACKLOG, ssl=tls, ssl_handshake_timeout=_TLS_HANDSHAKE_S
            )
        return await loop.create_server(factory, host, port, backlog=_BACKLOG)
    except OSError as error:
        raise ListenError(name, host, port, error.strerror or str(error)) from error
