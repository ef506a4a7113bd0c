"""`InboundConnections`: inbound sockets, from accept to the start of the handshake."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Final

from ophion.native.crypto import PrivateKey
from ophion.native.wire import Handshake, WireError
from ophion.peers.connection.connection import Connection
from ophion.peers.connection.pre_handshake import PreHandshake
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.policy.flood_guard import FloodGuard
from ophion.peers.policy.pending_limit import PendingLimit
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

_LOG_INTERVAL_S: Final = 60.0
"""Minimum seconds between two log lines about a flood."""


class InboundConnections:
    """Accepts inbound sockets. During a flood, reads the node id first and closes sockets of unknown nodes."""

    def __init__(
        self,
        key: PrivateKey,
        clock: Clock,
        pending: PendingLimit[Connection | PreHandshake],
        timeout_s: float,
        is_static_address: Callable[[str], bool],
        is_expected: Callable[[bytes], bool],
        receive: Callable[[socket.socket, bytes], Connection | None],
    ) -> None:
        """Create the handler of inbound connections. `receive` creates a connection from a socket and the bytes already
        read. `receive` returns None once the service has stopped.

        `is_expected` returns whether a node id is known.
        """
        self.pending = pending
        self.flood_guard = FloodGuard()
        self._key = key
        self._clock = clock
        self._timeout_s = timeout_s
        self._is_static_address = is_static_address
        self._is_expected = is_expected
        self._receive = receive
        self._waiting: set[PreHandshake] = set()
        self._logged_at: float | None = None

    def is_full(self) -> bool:
        """Whether a flood is active. The listener then accepts in batches."""
        return self.flood_guard.is_active(self._clock.monotonic())

    def close(self) -> None:
        """Close all sockets that wait for their first message."""
        for waiting in tuple(self._waiting):
            waiting.leave()

    def arrived(self, accepted: socket.socket, ip: str) -> None:
        """Handle a newly accepted socket: start the handshake, or first read the node id during a flood."""
        now = self._clock.monotonic()
        if not self.pending.admits(ip, now, is_known=self._is_static_address(ip)):
            accepted.close()
        elif not self.flood_guard.needs_early_node_id(ip, now, self.pending.waiting(ip)):
            self._accept(accepted, ip, b"")
        elif not self.flood_guard.may_decrypt(now):
            self.pending.refused += 1
            accepted.close()
        else:
            self._log_flood(ip, now)
            accepted.setblocking(False)
            waiting = PreHandshake(self, accepted, ip)
            self._waiting.add(waiting)
            self._enter(waiting, ip)
            waiting.read_auth(self._timeout_s)

    def auth_received(self, waiting: PreHandshake, auth: bytes) -> None:
        """Handle the auth message of a node during a flood: continue if the node is known or dials again, otherwise
        close.
        """
        try:
            node_id = Handshake.caller(self._key.secret(), auth)
            is_admitted = self._is_expected(node_id) or self.flood_guard.admits(node_id, self._clock.monotonic())
        except WireError:
            is_admitted = False
        if is_admitted:
            self.socket_closed(waiting)
            self._accept(waiting.enter(), waiting.ip, waiting.received)
        else:
            self.pending.refused += 1
            waiting.leave()

    def socket_closed(self, waiting: PreHandshake) -> None:
        """Remove a socket that was closed or became a connection."""
        self._waiting.discard(waiting)
        self.pending.leave(waiting)

    def _accept(self, accepted: socket.socket, ip: str, received: bytes) -> None:
        """Create the connection of a socket. The connection runs the handshake."""
        accepted.setblocking(False)
        connection = self._receive(accepted, received)
        if connection is None:
            accepted.close()
        else:
            self._enter(connection, ip)

    def _enter(self, newcomer: Connection | PreHandshake, ip: str) -> None:
        evicted = self.pending.enter(newcomer, ip, is_known=self._is_static_address(ip))
        if evicted is not None:
            evicted.disconnect(DisconnectReason.TOO_MANY_PEERS, "too many pending handshakes")

    def _log_flood(self, ip: str, now: float) -> None:
        """Log a flood, at a limited rate."""
        if self._logged_at is None or now - self._logged_at >= _LOG_INTERVAL_S:
            self._logged_at = now
            log.warning("throttling unknown inbound peers address=%s", ip)
