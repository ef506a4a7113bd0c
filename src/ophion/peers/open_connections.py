"""`OpenConnections`: all sockets of the node, from open to close."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from ophion.peers.connection.connection import Connection
from ophion.peers.disconnect_reasons import DisconnectReason

_STOP_TIMEOUT_S: Final = 2.0
_MAX_LEAVING: Final = 128
"""Limit of ended connections that wait until the remote node closes. Each such connection uses one file descriptor."""


class OpenConnections:
    """Runs connections, limits the number of closing connections, and closes all connections when the node stops."""

    def __init__(self) -> None:
        self._open: set[Connection] = set()
        self._leaving: dict[Connection, None] = {}
        self._has_left = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def leaving(self) -> int:
        """Number of connections that have ended and wait until the remote node closes."""
        return len(self._leaving)

    @property
    def waiting_bytes(self) -> int:
        """Bytes queued for all peers."""
        return sum(connection.waiting_bytes for connection in self._open)

    async def run(self, connection: Connection) -> None:
        """Run a connection until its socket is closed."""
        self._open.add(connection)
        try:
            await connection.run()
        finally:
            self._open.discard(connection)
            self._leaving.pop(connection, None)
            self._has_left.set()

    def track_leaving(self, connection: Connection, is_bounded: bool) -> None:
        """Track a closing connection. If `is_bounded`, abort the oldest closing connection above the limit of 128."""
        self._leaving[connection] = None
        if len(self._leaving) > _MAX_LEAVING and is_bounded:
            oldest = next(iter(self._leaving))
            del self._leaving[oldest]
            oldest.abort()

    async def disconnect_all(self) -> None:
        """Send a Disconnect to all peers and wait until all connections are closed, up to the timeout."""
        for connection in tuple(self._open):
            connection.disconnect(DisconnectReason.CLIENT_QUITTING, "this node stops")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                while self._open:
                    self._has_left.clear()
                    await self._has_left.wait()
