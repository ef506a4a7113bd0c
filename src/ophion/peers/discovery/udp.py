"""The socket of discovery: datagrams wait for their turn, so many in all and so many from one address."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from ophion.peers.connection.turns import Turns
from ophion.primitives.enode import socket_ip

log = logging.getLogger(__name__)

MAX_WAITING: Final = 512
MAX_PER_SOURCE: Final = 64
_PER_STEP: Final = 4


class UdpSocket(asyncio.DatagramProtocol):
    """Hands datagrams on, a few in each turn; what comes too fast is dropped."""

    def __init__(self, turns: Turns, receive: Callable[[bytes, str, int], None]) -> None:
        self._turns = turns
        self._receive = receive
        self._transport: asyncio.DatagramTransport | None = None
        self._waiting: deque[tuple[bytes, str, int]] = deque()
        self._by_source: Counter[str] = Counter()
        self._is_queued = False
        self.dropped = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: Sequence[Any]) -> None:
        ip = socket_ip(str(address[0]))
        if len(self._waiting) >= MAX_WAITING or self._by_source[ip] >= MAX_PER_SOURCE:
            self.dropped += 1
            return
        self._waiting.append((data, ip, int(address[1])))
        self._by_source[ip] += 1
        if not self._is_queued:
            self._is_queued = True
            self._turns.add(self._step)

    def error_received(self, error: Exception) -> None:
        """Somebody we sent something is not there; the question will not be answered, and that is enough."""

    def send(self, data: bytes, address: tuple[str, int]) -> None:
        """Send, if there is a socket and it takes it; nobody is told otherwise, as with every datagram."""
        if self._transport is not None and not self._transport.is_closing():
            try:
                self._transport.sendto(data, address)
            except (OSError, ValueError) as error:
                # no way to that address from here, or an address of another family
                log.debug("cannot send address=%s error=%s", address, error)

    def close(self) -> None:
        """Stop hearing and sending."""
        self._waiting.clear()
        if self._transport is not None:
            self._transport.close()

    def _step(self) -> bool:
        for _ in range(min(_PER_STEP, len(self._waiting))):
            data, ip, port = self._waiting.popleft()
            self._by_source[ip] -= 1
            if not self._by_source[ip]:
                del self._by_source[ip]
            try:
                self._receive(data, ip, port)
            except Exception:
                log.exception("a packet could not be handled ip=%s", ip)
        self._is_queued = bool(self._waiting)
        if not self._is_queued:
            self._by_source.clear()
        return self._is_queued
