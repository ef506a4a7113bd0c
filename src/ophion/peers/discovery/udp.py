"""The UDP socket of discovery, with a bounded receive queue and rate limits per source.

Verifying and answering a packet costs up to half a millisecond of signatures. So each pair of IP and port (one node)
has a rate limit, and each IP, which many nodes may share, has another rate limit. Responses have limits of their own: a
flood of requests cannot suppress the responses to our own requests, even from the same address.

Source addresses can be forged, so a flood may come from any number of addresses. Packets from the addresses of known
nodes have a queue of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from ophion.peers.connection.receive_scheduler import ReceiveScheduler
from ophion.peers.discovery.packets import PacketKind
from ophion.peers.token_bucket import TokenBucket
from ophion.primitives.enode import socket_ip
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

MAX_WAITING: Final = 512
"""Limit of queued packets from unknown addresses. The queue for known addresses has the same limit."""
MAX_PER_SOURCE: Final = 64
PORT_BURST: Final = 50
_PORT_PER_S: Final = 15
ADDRESS_BURST: Final = 400
ADDRESS_PER_S: Final = 150
_MAX_RATE_LIMITS: Final = 4096
_KIND_OFFSET: Final = 97
"""Offset of the packet type byte, after hash and signature."""
_RESPONSES: Final = frozenset({PacketKind.PONG, PacketKind.NEIGHBORS, PacketKind.RECORD_RESPONSE})
_MAX_PER_STEP: Final = 4


class UdpSocket(asyncio.DatagramProtocol):
    """Passes a few datagrams per time slice to discovery, and drops datagrams above the rate limits."""

    def __init__(
        self,
        scheduler: ReceiveScheduler,
        clock: Clock,
        receive: Callable[[bytes, str, int], None],
        is_known: Callable[[str], bool] = lambda ip: False,
    ) -> None:
        """Create the UDP socket. `is_known` returns whether an IP belongs to a static node, a bootnode or a connected
        network member.
        """
        self._scheduler = scheduler
        self._clock = clock
        self._receive = receive
        self._transport: asyncio.DatagramTransport | None = None
        self._is_known = is_known
        self._known: deque[tuple[bytes, str, int]] = deque()
        self._waiting: deque[tuple[bytes, str, int]] = deque()
        self._by_source: Counter[str] = Counter()
        self._rate_limits: OrderedDict[tuple[str, int | None, bool], TokenBucket] = OrderedDict()
        self._is_queued = False
        self.dropped = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: Sequence[Any]) -> None:
        ip, port = socket_ip(str(address[0])), int(address[1])
        queue = self._known if self._is_known(ip) else self._waiting
        is_full = len(queue) >= MAX_WAITING or self._by_source[ip] >= MAX_PER_SOURCE
        if is_full or not self._allows(ip, port, data):
            self.dropped += 1
            return
        queue.append((data, ip, port))
        self._by_source[ip] += 1
        if not self._is_queued:
            self._is_queued = True
            self._scheduler.add(self._step)

    def error_received(self, error: Exception) -> None:
        """Ignore an ICMP error for a packet we sent. The request times out later."""

    def send(self, data: bytes, address: tuple[str, int]) -> None:
        """Send a datagram. Errors are only logged, because datagrams may be lost in any case."""
        if self._transport is not None and not self._transport.is_closing():
            try:
                self._transport.sendto(data, address)
            except (OSError, ValueError) as error:
                # only log the error: the host may have no route to the address, or the address has the wrong family
                log.debug("cannot send packet address=%s error=%s", address, error)

    def close(self) -> None:
        """Close the socket and drop the queued packets."""
        self._waiting.clear()
        self._known.clear()
        if self._transport is not None:
            self._transport.close()

    def _allows(self, ip: str, port: int, data: bytes) -> bool:
        is_response = len(data) > _KIND_OFFSET and data[_KIND_OFFSET] in _RESPONSES
        now = self._clock.monotonic()
        # take from the port's limit first, because packets above this limit must not use up the limit of the IP address
        return self._rate_limit((ip, port, is_response), PORT_BURST, _PORT_PER_S).take(1, now) and self._rate_limit(
            (ip, None, is_response), ADDRESS_BURST, ADDRESS_PER_S
        ).take(1, now)

    def _rate_limit(self, key: tuple[str, int | None, bool], burst: float, per_s: float) -> TokenBucket:
        bucket = self._rate_limits.get(key)
        if bucket is None:
            bucket = self._rate_limits[key] = TokenBucket(burst, per_s)
            if len(self._rate_limits) > _MAX_RATE_LIMITS:
                self._rate_limits.popitem(last=False)
        else:
            self._rate_limits.move_to_end(key)
        return bucket

    def _step(self) -> bool:
        for _ in range(min(_MAX_PER_STEP, len(self._known) + len(self._waiting))):
            data, ip, port = (self._known or self._waiting).popleft()
            self._by_source[ip] -= 1
            if not self._by_source[ip]:
                del self._by_source[ip]
            try:
                self._receive(data, ip, port)
            except Exception:
                log.exception("cannot handle packet ip=%s", ip)
        self._is_queued = bool(self._known or self._waiting)
        if not self._is_queued:
            self._by_source.clear()
        return self._is_queued
