"""TLS handshakes that are under way: a limited number, of a limited time.

A connection has a place (places.py) only when it speaks HTTP or WebSocket, and a client need not come so far: thousands
that begin a handshake and do not go on would each hold a socket and some hundred kilobytes. So plain sockets are
accepted, counted, and secured here; when there are too many, the oldest gives way, since an honest client needs
milliseconds.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final, cast

from ophion.runtime.driven import driven

MOST: Final = 256
"""Handshakes at a time."""
_TIMEOUT_S: Final = 10.0
_GOODBYE_S: Final = 5.0
"""How long a connection that is closed here is kept for a client that does not say goodbye too."""


class Handshakes:
    """Makes connections of one service, each secured before its protocol hears of it."""

    def __init__(self, context: ssl.SSLContext, factory: Callable[[], asyncio.BaseProtocol], most: int = MOST) -> None:
        self._context = context
        self._factory = factory
        self._most = most
        self._under_way: dict[_Newcomer, None] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def newcomer(self) -> asyncio.Protocol:
        """The protocol of a socket that was accepted just now."""
        return _Newcomer(self)

    def begin(self, newcomer: _Newcomer) -> None:
        """One more; the oldest gives way when there are too many."""
        self._under_way[newcomer] = None
        if len(self._under_way) > self._most:
            oldest = next(iter(self._under_way))
            del self._under_way[oldest]
            oldest.give_way()

    def end(self, newcomer: _Newcomer) -> None:
        """One less, however it ended."""
        self._under_way.pop(newcomer, None)

    async def secured(self, transport: asyncio.Transport, newcomer: _Newcomer) -> asyncio.Transport | None:
        """The same connection, encrypted; None when the client did not get so far."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.start_tls(
                transport,
                newcomer,
                self._context,
                server_side=True,
                ssl_handshake_timeout=_TIMEOUT_S,
                ssl_shutdown_timeout=_GOODBYE_S,
            )
        except OSError:  # also what the ssl module raises, and a time-out
            transport.abort()
            return None

    def protocol(self) -> asyncio.Protocol:
        """Who talks to a client that has come so far."""
        return cast(asyncio.Protocol, self._factory())


class _Newcomer(asyncio.Protocol):
    """A client during its handshake; what it sends together with its end is kept for whoever talks to it then."""

    def __init__(self, handshakes: Handshakes) -> None:
        self._handshakes = handshakes
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._early: list[bytes] = []
        self._is_lost = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._handshakes.begin(self)
        # at once: in the next turn of the loop the first bytes of the handshake would be taken for early data
        self._task = driven(self._shake(), asyncio.get_running_loop())

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True

    def give_way(self) -> None:
        """Somebody else begins a handshake."""
        self._transport.abort()

    async def _shake(self) -> None:
        try:
            secured = await self._handshakes.secured(self._transport, self)
        finally:
            self._handshakes.end(self)
        # a loop may call a handshake finished that was ended by `abort`
        if secured is None or self._is_lost or self._transport.is_closing():
            return
        protocol = self._handshakes.protocol()
        secured.set_protocol(protocol)
        protocol.connection_made(secured)
        for data in self._early:
            protocol.data_received(data)
