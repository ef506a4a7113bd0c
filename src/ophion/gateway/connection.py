"""One client of a gateway: an HTTP connection whose requests go on to a node, or a WebSocket that becomes a tunnel.

    bytes -> HttpConnection -> Passage -> Upstream -> Answers -> bytes          in general
    bytes -> UpstreamConnection.relay -> bytes                                  a head seen before, and a usual answer

On the short way the connection has a `_relay` and its `Answers` know nothing of it. Whatever else happens before the
answer is there goes the usual way, so the wait is made a usual one first (`wait_properly`).
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final, cast

from ophion.gateway.proxy_headers import handshake, target_of
from ophion.gateway.routing import Paths, RouteTarget
from ophion.gateway.tunnel import Openings, Tunnel
from ophion.gateway.upstream import UpstreamConnection
from ophion.rpc.transport.connection_slots import BUSY
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.policy import HttpPolicy, Result, Session
from ophion.rpc.transport.http.reader import RequestReader

_MAX_AT_WORK: Final = 8
_PASSAGE_S: Final = 200e-6
"""What a request that goes to a node costs beside its reading: it is sent on, and an answer comes back, when nobody
measures it. It is counted where it begins, so that a crowd begins no more than it is given time for."""


class GatewayConnection(HttpConnection):
    """One client."""

    def __init__(
        self,
        policy: HttpPolicy,
        paths: Paths,
        hand_over: Callable[[HttpConnection, Tunnel], None],
        openings: Openings,
    ) -> None:
        """`hand_over` gives the place of this connection to a tunnel."""
        super().__init__(policy)
        self._openings = openings
        self._paths = paths
        self._hand_over = hand_over
        self._is_handed_over = False
        self._relay: UpstreamConnection | None = None
        self._asked_bytes = 0
        self._known_head = self._forward = b""
        """A head that this client has sent before, and the one that goes to the node in its place."""
        self._known_end = self._known_size = -1

    def data_received(self, data: bytes) -> None:
        if self._session is None and self._reader is None and not self._rest:
            self._recognise(data)
        if self._is_plain and (perf_counter() < self._turns.ends_at or self._turns.goes_on()):
            if len(data) == self._known_size and data.startswith(self._known_head):
                end = self._known_end
            else:
                end = self._learned(data)
            idle = cast(RouteTarget, self._session).upstream.idle
            if end > 0 and idle:
                self._was_active, self._is_plain = True, False
                self._asked_bytes = len(data) - end
                one = self._relay = idle.pop()
                one.relay(self._forward + data[end:], self)
                return
        self.wait_properly()
        super().data_received(data)

    def relayed(self, answer: bytes) -> None:
        self._relay, self._is_plain = None, True
        self._transport.write(answer)

    def wait_properly(self) -> None:
        if self._relay is not None:
            pending, self._relay = self._relay.as_pending(), None
            self._answers.add(pending, size=self._asked_bytes)
            self._settle()

    def passes(self) -> None:
        self._turns.spend(_PASSAGE_S)
        self._share.note(_PASSAGE_S, perf_counter())

    def _recognise(self, data: bytes) -> None:
        """A crowd of newcomers sends the same head, once each: the first of them has been judged for all."""
        way = self._paths.known(data[: data.find(b"\r\n\r\n") + 4])
        if way is not None and not self.is_ending:
            self._work_with(way)
            self._is_plain = True

    def _learn(self, data: bytes, position: int, session: Session | None) -> None:
        """Also with the first request of a connection: what is learned belongs to nobody, and holds no token."""
        way = cast("RouteTarget | None", self._session)
        super()._learn(data, position, way)
        if way is not None and self._learnable_size >= 0:
            head = data[position : data.find(b"\r\n\r\n", position) + 4]
            if head in way.heads.sizes:
                self._paths.remember(head, way)

    def _learned(self, data: bytes) -> int:
        """Where the body begins in a request whose head is known to mean nothing else; 0 for any other."""
        end = data.find(b"\r\n\r\n") + 4
        size = len(data) - end
        if self._plain_sizes.get(data[:end]) != size:
            return 0
        self._known_head, self._known_end, self._known_size = data[:end], end, len(data)
        self._forward = cast(RouteTarget, self._session).head(size)
        return end

    def _work_with(self, session: Session) -> None:
        super()._work_with(session)
        self._known_size = -1

    @property
    def _has_room(self) -> bool:
        """Some requests at a time: each has a connection to the node, of which others need some too."""
        return super()._has_room and len(self._answers) < _MAX_AT_WORK

    def eof_received(self) -> bool:
        self.wait_properly()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.wait_properly()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self.wait_properly()
        super().pause_writing()

    def tick(self, seconds: float) -> None:
        self.wait_properly()
        super().tick(seconds)

    def idleness(self) -> float:
        return super().idleness() if self._relay is None else BUSY

    def cut_off(self) -> None:
        self.wait_properly()
        super().cut_off()

    def close(self) -> None:
        self.wait_properly()
        super().close()

    def _result(self, reader: RequestReader) -> Result:
        request = reader.request()
        way = self._paths.passage(request)
        if way is None:
            return self._paths.respond(request)
        if not isinstance(way, RouteTarget):
            return way
        if way.is_short:
            self._work_with(way)
            if reader.is_usual(target_of(request.path, request.query)):
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
        tunnel = Tunnel(
            self._transport,
            upstream,
            handshake(target_of(b"/", request.query), upstream.host, request.headers),
            rest,
            self._policy.closed,  # type: ignore[arg-type]  # whoever has the place leaves it
            self._policy.commons,
            self._openings,
            self._policy.limits.write_timeout_s,
            self._is_paused,
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
