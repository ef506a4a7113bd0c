"""One client connection of a gateway: forwards HTTP requests to a node, or becomes a WebSocket tunnel.

bytes -> HttpConnection -> GatewayConnection.result -> Upstream -> ResponseQueue -> bytes slow path
bytes -> RelayPath -> bytes                                                              fast path
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from ophion.gateway.fast_path import RelayPath
from ophion.gateway.proxy_headers import handshake, target_of
from ophion.gateway.routing import PathRouter, RouteTarget
from ophion.gateway.tunnel import Tunnel, TunnelSlots
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.policy import HttpPolicy, Result
from ophion.rpc.transport.http.reader import RequestReader


class GatewayConnection(asyncio.Protocol):
    """Passes received bytes to the fast path first. If the fast path refuses the bytes, `HttpConnection` gets them."""

    max_open = 8
    """Maximum number of open requests per client. Each request occupies a connection to the node."""

    def __init__(
        self,
        policy: HttpPolicy,
        paths: PathRouter,
        hand_over: Callable[[HttpConnection, Tunnel], None],
        openings: TunnelSlots,
    ) -> None:
        """Create the connection. The connection calls `hand_over` to transfer its connection slot to a WebSocket
        tunnel.
        """
        self._policy = policy
        self._paths = paths
        self._hand_over = hand_over
        self._openings = openings
        self._http = HttpConnection(policy, self)
        self._fast_path = RelayPath(self._http)

    # --- called by the event loop ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._http.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._http.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._http.session is None:
            self._recognise(data)
        if not self._fast_path.relay(data):
            self._http.data_received(data)

    def eof_received(self) -> bool:
        return self._http.eof_received()

    def pause_writing(self) -> None:
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._http.resume_writing()

    # --- called by the HTTP connection -----------------------------------------------------------

    def result(self, reader: RequestReader) -> Result:
        request = reader.request()
        target = self._paths.fast_route(request)
        if target is None:
            return self._paths.respond(request)
        if not isinstance(target, RouteTarget):
            return target
        if target.is_short:
            self._http.use_session(target)
            if reader.is_plain(target_of(request.path, request.query)):
                self._http.heads.propose(len(request.body), is_private=reader.has_unused_token)
        return cast(Result, target.handle(request.body, self._http))

    def learned(self, head: bytes) -> None:
        self._paths.remember(head, cast(RouteTarget, self._http.session))

    def upgrade(self, reader: RequestReader, rest: bytes) -> bool:
        """Open a tunnel if the path leads to a WebSocket. Returns False for any other upgrade, which is handled as a
        plain request.
        """
        http, policy = self._http, self._policy
        if reader.refusal is not None or reader.is_old or http.answers:
            return False
        if b"websocket" not in reader.headers.get(b"upgrade", b"").lower() or b"content-length" in reader.headers:
            return False
        request = reader.request()
        upstream = self._paths.socket(request.path) if request.method == b"GET" else None
        if upstream is None:
            return False
        tunnel = Tunnel(
            http.transport,
            upstream,
            handshake(target_of(b"/", request.query), upstream.host, request.headers),
            rest,
            policy.closed,
            policy.shared,
            self._openings,
            policy.limits.write_timeout_s,
            http.is_paused,
        )
        http.detach()
        self._hand_over(http, tunnel)
        http.transport.set_protocol(tunnel)
        tunnel.begin()
        return True

    def _recognise(self, data: bytes) -> None:
        """Enable the fast path for the first request of a client, if another client has already sent the same request
        head.
        """
        target = self._paths.known(data[: data.find(b"\r\n\r\n") + 4])
        if target is not None:
            self._http.start_session(target)
