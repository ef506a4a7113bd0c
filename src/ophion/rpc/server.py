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
from ophion.rpc.dispatcher import Dispatcher
from ophion.rpc.health import Health
from ophion.rpc.http_connection import HttpConnection
from ophion.rpc.http_policy import Application, Guard, HttpLimits, HttpPolicy, PlainHeads, Result
from ophion.rpc.http_wire import JSON, Request, Response
from ophion.rpc.places import Places
from ophion.rpc.replies import Reply

if TYPE_CHECKING:
    import ssl

    from ophion.rpc.auth.door import Door
    from ophion.rpc.auth.gate import Gate

logger = logging.getLogger(__name__)

_TICK_S: Final = 5.0
_BACKLOG: Final = 1024
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

    def __init__(
        self, dispatcher: Dispatcher, health: Health, door: Door | None = None, gate: Gate | None = None
    ) -> None:
        self.plain: Callable[[bytes], Reply] | None = dispatcher.handle if gate is None else None
        self.token_guard: Guard | None = gate
        self._dispatcher = dispatcher
        self._health = health
        self._door = door
        self._gate = gate

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
        if self._gate is not None:
            self._gate.close()
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
        self.places: Places[HttpConnection] = Places(name, limits.max_connections)

    @property
    def is_encrypted(self) -> bool:
        """Whether clients must speak TLS."""
        return self._tls is not None

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve; cancelling stops listening, drops waiting requests and closes every connection."""
        loop = asyncio.get_running_loop()
        application = self._application(loop)
        # only an application that asks for tokens has one
        guard: Guard | None = getattr(application, "token_guard", None)
        policy = HttpPolicy(
            application,
            self._hosts,
            self._origins,
            self._limits,
            PlainHeads(),
            self.places.admit,
            self.places.leave,
            guard,
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
            # loads the ssl module, which other services are spared
            from ophion.rpc.tls_handshakes import Handshakes

            factory = Handshakes(tls, factory).newcomer
        return await loop.create_server(factory, host, port, backlog=_BACKLOG)
    except OSError as error:
        raise ListenError(name, host, port, error.strerror or str(error)) from error
