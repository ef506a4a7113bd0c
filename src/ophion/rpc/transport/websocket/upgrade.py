"""WebSocket clients on the port of an HTTP service: development tools expect one port for both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.policy import HttpPolicy

_LONGEST_HEAD: Final = 8 * 1024


class UpgradableConnection(HttpConnection):
    """An HTTP client that may turn out to speak WebSocket: the first bytes tell.

    After them the loop calls `HttpConnection.data_received` itself, so requests cost what they do elsewhere.
    """

    def __init__(self, policy: HttpPolicy, make_socket: Callable[[], asyncio.BaseProtocol]) -> None:
        super().__init__(policy)
        self._make_socket = make_socket

    def data_received(self, data: bytes) -> None:
        if data[:4] == b"GET " and b"upgrade: websocket" in data[:_LONGEST_HEAD].lower():
            self._policy.closed(self)
            self.is_ending = True
            protocol = cast(asyncio.Protocol, self._make_socket())
            self._transport.set_protocol(protocol)
            protocol.connection_made(self._transport)
            protocol.data_received(data)
            return
        self.data_received = super().data_received  # type: ignore[method-assign]
        self._transport.set_protocol(self)
        super().data_received(data)
