"""The socket of discovery: datagrams wait for their turn, so many in all and so many from one address.

To open a packet and to answer it takes up to half a millisecond of signatures, so there are so many a second for a port
of an address, which is one node, and so many for an address, which may be that of many. Answers are counted apart from
questions: whoever floods this node with questions does not keep it from hearing what it has asked for, not even from
the same address.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from ophion.peers.connection.receive_scheduler import ReceiveScheduler
from ophion.peers.discovery.packets import Kind
from ophion.peers.token_bucket import TokenBucket
from ophion.primitives.enode import socket_ip
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

MAX_WAITING: Final = 512
MAX_PER_SOURCE: Final = 64
PORT_BURST: Final = 50
_PORT_PER_S: Final = 15
ADDRESS_BURST: Final = 400
ADDRESS_PER_S: Final = 150
_ALLOWANCES: Final = 4096
_KIND_AT: Final = 97
"""Where a packet says what it is, after hash and signature."""
_ANSWERS: Final = frozenset({Kind.PONG, Kind.NEIGHBORS, Kind.RECORD_RESPONSE})
_PER_STEP: Final = 4


class UdpSocket(asyncio.DatagramProtocol):
    """Hands datagrams on, a few in each turn; what comes too fast is dropped."""

    def __init__(self, scheduler: ReceiveScheduler, clock: Clock, receive: Callable[[bytes, str, int], None]) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._receive = receive
        self._transport: asyncio.DatagramTransport | None = None
        self._waiting: deque[tuple[bytes, str, int]] = deque()
        self._by_source: Counter[str] = Counter()
        self._allowances: OrderedDict[tuple[str, int | None, bool], TokenBucket] = OrderedDict()
        self._is_queued = False
        self.dropped = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: Sequence[Any]) -> None:
        ip, port = socket_ip(str(address[0])), int(address[1])
        is_full = len(self._waiting) >= MAX_WAITING or self._by_source[ip] >= MAX_PER_SOURCE
        if is_full or not self._allows(ip, port, data):
            self.dropped += 1
            return
        self._waiting.append((data, ip, port))
        self._by_source[ip] += 1
        if not self._is_queued:
            self._is_queued = True
            self._scheduler.add(self._step)

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

    def _allows(self, ip: str, port: int, data: bytes) -> bool:
        is_answer = len(data) > _KIND_AT and data[_KIND_AT] in _ANSWERS
        now = self._clock.monotonic()
        # in this order: what a port has too much of is not on the account of its neighbours
        return self._allowance((ip, port, is_answer), PORT_BURST, _PORT_PER_S).take(1, now) and self._allowance(
            (ip, None, is_answer), ADDRESS_BURST, ADDRESS_PER_S
        ).take(1, now)

    def _allowance(self, key: tuple[str, int | None, bool], most: float, per_s: float) -> TokenBucket:
        allowance = self._allowances.get(key)
        if allowance is None:
            allowance = self._allowances[key] = TokenBucket(most, per_s)
            if len(self._allowances) > _ALLOWANCES:
                self._allowances.popitem(last=False)
        else:
            self._allowances.move_to_end(key)
        return allowance

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
