"""WebSocket clients on the port of an HTTP service. Development tools expect one port for HTTP and WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.policy import HttpPolicy
from ophion.rpc.transport.http.state import HttpState

_MAX_HEAD_BYTES: Final = 8 * 1024


class UpgradableConnection(HttpConnection):
    """A client connection that uses HTTP or WebSocket, depending on its first bytes.

    After the first bytes, the loop calls `HttpConnection.data_received` directly, so that requests have no overhead.
    """

    def __init__(self, policy: HttpPolicy, make_socket: Callable[[], asyncio.BaseProtocol]) -> None:
        super().__init__(policy)
        self._make_socket = make_socket

    def data_received(self, data: bytes) -> None:
        if data[:4] == b"GET " and b"upgrade: websocket" in data[:_MAX_HEAD_BYTES].lower():
            self._policy.closed(self)
            self.state, self.is_ending = HttpState.DETACHED, True
            protocol = cast(asyncio.Protocol, self._make_socket())
            self.transport.set_protocol(protocol)
            protocol.connection_made(self.transport)
            protocol.data_received(data)
            return
        self.data_received = super().data_received  # type: ignore[method-assign]
        self.transport.set_protocol(self)
        super().data_received(data)
