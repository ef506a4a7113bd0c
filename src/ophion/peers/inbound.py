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

_SAID_S: Final = 60.0
"""How often it is said that an address is crowded."""


class InboundConnections:
    """Lets visitors in, hears them first, or sends them away. Belongs to the event loop."""

    def __init__(
        self,
        key: PrivateKey,
        clock: Clock,
        doorway: PendingLimit[Connection | PreHandshake],
        patience_s: float,
        is_static_address: Callable[[str], bool],
        is_expected: Callable[[bytes], bool],
        receive: Callable[[socket.socket, bytes], Connection | None],
    ) -> None:
        """`receive` makes a connection of a socket and of what was said on it; None where nobody is received now.

        `is_expected`: whether a node of this name is known that may connect.
        """
        self.doorway = doorway
        self.crowd = FloodGuard()
        self._key = key
        self._clock = clock
        self._patience_s = patience_s
        self._is_static_address = is_static_address
        self._is_expected = is_expected
        self._receive = receive
        self._heard: set[PreHandshake] = set()
        self._said_at: float | None = None

    def is_crowded(self) -> bool:
        """Whether many are being refused, and others have to wait for that."""
        return self.crowd.is_there(self._clock.monotonic())

    def close(self) -> None:
        """Nobody is heard any more."""
        for visitor in tuple(self._heard):
            visitor.leave()

    def arrived(self, taken: socket.socket, ip: str) -> None:
        """Somebody has just connected."""
        now = self._clock.monotonic()
        if not self.doorway.admits(ip, now, is_known=self._is_static_address(ip)):
            taken.close()
        elif not self.crowd.presses(ip, now, self.doorway.waiting(ip)):
            self._let_in(taken, ip, b"")
        elif not self.crowd.has_time(now):
            self.doorway.refused += 1
            taken.close()
        else:
            self._say(ip, now)
            taken.setblocking(False)
            visitor = PreHandshake(self, taken, ip)
            self._heard.add(visitor)
            self._enter(visitor, ip)
            visitor.hear(self._patience_s)

    def introduced(self, visitor: PreHandshake, auth: bytes) -> None:
        """Somebody says who it is while many are being refused."""
        try:
            node_id = Handshake.caller(self._key.secret(), auth)
            may_enter = self._is_expected(node_id) or self.crowd.admits(node_id, self._clock.monotonic())
        except WireError:
            may_enter = False
        if may_enter:
            self.went(visitor)
            self._let_in(visitor.enter(), visitor.ip, visitor.said)
        else:
            self.doorway.refused += 1
            visitor.leave()

    def went(self, visitor: PreHandshake) -> None:
        """Somebody is gone, or waits no longer."""
        self._heard.discard(visitor)
        self.doorway.leave(visitor)

    def _let_in(self, taken: socket.socket, ip: str, said: bytes) -> None:
        """The handshake begins, or goes on."""
        taken.setblocking(False)
        connection = self._receive(taken, said)
        if connection is None:
            taken.close()
        else:
            self._enter(connection, ip)

    def _enter(self, newcomer: Connection | PreHandshake, ip: str) -> None:
        evicted = self.doorway.enter(newcomer, ip, is_known=self._is_static_address(ip))
        if evicted is not None:
            evicted.disconnect(DisconnectReason.TOO_MANY_PEERS, "too many handshakes at a time")

    def _say(self, ip: str, now: float) -> None:
        """Now and then: whoever floods the door must not fill the log."""
        if self._said_at is None or now - self._said_at >= _SAID_S:
            self._said_at = now
            log.warning("many nodes are refused address=%s; unknown ones are heard when they come again", ip)
