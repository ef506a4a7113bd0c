"""Fast path of a gateway: forwards a plain request and its plain response without parsing either.

    bytes -> RelayPath -> UpstreamConnection.relay -> bytes

The slow path is `HttpConnection` with `RouteTarget.handle`. A request takes the fast path if the connection is READY,
its HTTP head is known, and a connection to the node is idle. If the client sends more bytes or disconnects before the
response arrives, the connection leaves the state RELAYING, and the response takes the slow path. Both paths give the
same responses; tests/unit/gateway/test_fast_path.py compares them.
"""

from __future__ import annotations

from time import perf_counter
from typing import cast

from ophion.gateway.routing import RouteTarget
from ophion.rpc.transport.http.connection import READY, HttpConnection


class RelayPath:
    """The fast path of one client connection."""

    __slots__ = ("_forwarded_for", "_head", "_http")

    def __init__(self, http: HttpConnection) -> None:
        self._http = http
        self._forwarded_for = b""
        """The client's request head from which the forwarded request head `_head` was built."""
        self._head = b""

    def relay(self, data: bytes) -> bool:
        """Send a plain request to the node. Returns False if the request must take the slow path."""
        http = self._http
        scheduler = http.scheduler
        if http.state is not READY or not (perf_counter() < scheduler.ends_at or scheduler.has_time()):
            return False
        heads, target = http.heads, cast(RouteTarget, http.session)
        is_same = len(data) == heads.size and data.startswith(heads.head)
        end = heads.end if is_same else heads.whole(data)
        idle = target.upstream.idle
        if end <= 0 or not idle:
            return False
        if self._forwarded_for is not heads.head:
            self._forwarded_for, self._head = heads.head, target.head(len(data) - end)
        upstream = idle.pop()
        http.relay(upstream, len(data) - end)
        upstream.relay(self._head + data[end:], http)
        return True
