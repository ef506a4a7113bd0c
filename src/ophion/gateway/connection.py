"""One client of a gateway: an HTTP connection whose requests go on to a node, or a WebSocket that becomes a tunnel."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ophion.gateway.heads import handshake
from ophion.gateway.paths import Passage, Paths
from ophion.gateway.tunnel import Tunnel
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.policy import HttpPolicy, Result
from ophion.rpc.transport.http.reader import RequestReader


class GatewayConnection(HttpConnection):
    """One client."""

    def __init__(self, policy: HttpPolicy, paths: Paths, hand_over: Callable[[HttpConnection, Tunnel], None]) -> None:
        """`hand_over` gives the place of this connection to a tunnel."""
        super().__init__(policy)
        self._paths = paths
        self._hand_over = hand_over
        self._is_handed_over = False

    def _result(self, reader: RequestReader) -> Result:
        request = reader.request()
        way = self._paths.passage(request)
        if way is None:
            return self._paths.respond(request)
        if not isinstance(way, Passage):
            return way
        self._work_with(way)
        target = request.path + b"?" + request.query if request.query else request.path
        if reader.is_usual(target):
            self._learnable_size = len(request.body)
        return cast(Result, way.handle(request.body, self))

    def on_upgrade(self, rest: bytes) -> bool:
        """A WebSocket where a path leads to one; other protocols, and other paths, go on as plain requests."""
        reader = cast(RequestReader, self._reader)
        if reader.refusal is not None or reader.is_old or self._answers:
            return False
        if b"websocket" not in reader.headers.get(b"upgrade", b"").lower() or b"content-length" in reader.headers:
            return False
        request = reader.request()
        upstream = self._paths.socket(request.path) if request.method == b"GET" else None
        if upstream is None:
            return False
        target = b"/?" + request.query if request.query else b"/"
        tunnel = Tunnel(
            self._transport,
            upstream,
            handshake(target, upstream.host, request.headers),
            rest,
            self._policy.closed,  # type: ignore[arg-type]  # whoever has the place leaves it
            self._policy.commons.budget,
            self._policy.limits.write_timeout_s,
        )
        self.is_ending, self._is_plain, self._is_handed_over = True, False, True
        self._rest = b""
        reader.close()
        self._answers.abandon()  # there are none; but it knows this object
        self._policy.commons.budget.settle(self)
        self._hand_over(self, tunnel)
        self._transport.set_protocol(tunnel)
        tunnel.begin()
        return True

    def _settle(self) -> None:
        if not self._is_handed_over:
            super()._settle()
