"""`PreHandshake`: an inbound socket before its first message, without session, task or key agreement."""

from __future__ import annotations

import asyncio
import socket
from typing import Final, Protocol

from ophion.native.wire import MAX_HANDSHAKE_SIZE
from ophion.peers.disconnect_reasons import DisconnectReason

_SIZE_BYTES: Final = 2


class Host(Protocol):
    """Receives the events of sockets that wait for their first message."""

    def auth_received(self, waiting: PreHandshake, auth: bytes) -> None:
        """Called when the auth message is complete. `auth` includes the size prefix of the message."""

    def socket_closed(self, waiting: PreHandshake) -> None:
        """Called when the socket is closed."""


class PreHandshake:
    """An accepted socket whose first message has not arrived."""

    __slots__ = ("_host", "_socket", "_timer", "ip", "received")

    def __init__(self, host: Host, accepted: socket.socket, ip: str) -> None:
        self._host = host
        self._socket: socket.socket | None = accepted
        self._timer: asyncio.TimerHandle | None = None
        self.ip = ip
        self.received = b""

    def read_auth(self, seconds: float) -> None:
        """Start reading the first message, with a timeout in seconds."""
        self._read()
        if self._socket is not None:
            loop = asyncio.get_running_loop()
            loop.add_reader(self._socket.fileno(), self._read)
            self._timer = loop.call_later(seconds, self.leave)

    def enter(self) -> socket.socket:
        """Hand the socket to the caller, which runs the handshake. This object no longer reads from the socket."""
        accepted = self._socket
        assert accepted is not None
        self._unwatch(accepted)
        self._socket = None
        return accepted

    def leave(self) -> None:
        """Close without a Disconnect, because no keys are agreed yet."""
        if self._socket is not None:
            self.enter().close()
            self._host.socket_closed(self)

    def disconnect(self, reason: DisconnectReason, text: str = "") -> None:
        """Close an evicted socket. No Disconnect is possible, because no keys are agreed yet."""
        self.leave()

    def _unwatch(self, accepted: socket.socket) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            asyncio.get_running_loop().remove_reader(accepted.fileno())

    def _read(self) -> None:
        accepted = self._socket
        assert accepted is not None
        try:
            data = accepted.recv(_SIZE_BYTES + MAX_HANDSHAKE_SIZE - len(self.received))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        received = self.received = self.received + data
        size = _SIZE_BYTES + int.from_bytes(received[:_SIZE_BYTES], "big")
        if not data or (len(received) >= _SIZE_BYTES and size > _SIZE_BYTES + MAX_HANDSHAKE_SIZE):
            self.leave()
        elif len(received) >= _SIZE_BYTES and len(received) >= size:
            self._host.auth_received(self, received[:size])
