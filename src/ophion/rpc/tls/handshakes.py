"""Limit on pending TLS handshakes.

A connection takes a slot (connection_slots.py) only after its handshake. So thousands of unfinished handshakes could
each hold a socket and some hundred kilobytes. This module accepts plain sockets, counts them and runs the handshakes.
Above the limit it drops the oldest handshake, since an honest client needs only milliseconds.

A handshake takes a millisecond, and all pending handshakes may start at the same moment. The fair scheduler queues the
handshakes and starts some in each iteration of the loop. If the first bytes cannot be a handshake, the connection is
closed without calling OpenSSL.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, cast

from ophion.runtime.eager_coroutine import driven
from ophion.runtime.failed_handshakes import FailedHandshakes, reason_of
from ophion.runtime.fair_scheduler import FairScheduler

MAX_PENDING: Final = 256
"""Maximum number of handshakes that wait for the client. Queued handshakes, which wait for this node, do not count."""
_MAX_QUEUED: Final = 2048
_HANDSHAKE_TIMEOUT_S: Final = 10.0
_SHUTDOWN_TIMEOUT_S: Final = 5.0
"""Timeout for the client's close_notify after this node has sent its own close_notify."""
_STARTS_PER_SLICE: Final = 2
"""Number of queued handshakes that start in one time slice."""
_HANDSHAKE_COST_S: Final = 0.001
"""Processor time of a handshake in seconds: key exchange, a signature, and creating the connection's objects."""
_HANDSHAKE_RECORD, _CLIENT_HELLO = 0x16, 0x01
_MAX_RECORD_BYTES: Final = 1 << 14
_MIN_HELLO_BYTES: Final = 6
_MAX_HELLO_BYTES: Final = 32 * 1024
"""Maximum bytes of a ClientHello. Common clients send at most two thousand bytes."""
_NO_TLS: Final = "the client does not use TLS"
_SILENT: Final = "the client sent no ClientHello in time"
_TOO_MANY: Final = "too many handshakes at the same time"


class Handshakes:
    """Runs the TLS handshakes of one service. The protocol of a connection is created after its handshake."""

    def __init__(
        self,
        context: ssl.SSLContext,
        factory: Callable[[], asyncio.BaseProtocol],
        scheduler: FairScheduler,
        most: int = MAX_PENDING,
        service: str = "",
    ) -> None:
        """Create the handshakes of one service. `service` is the name of the service in the log."""
        self._context = context
        self._factory = factory
        self._failures = FailedHandshakes(service)
        self._most = most
        self._pending: dict[_PendingHandshake, None] = {}
        self._scheduler = scheduler
        self._queue: deque[_PendingHandshake] = deque()
        self.begun = 0
        """Number of handshakes that OpenSSL has started so far."""

    def __len__(self) -> int:
        return len(self._pending) + len(self._queue)

    def newcomer(self) -> asyncio.Protocol:
        """Return the protocol object for a newly accepted socket."""
        return _PendingHandshake(self)

    def begin(self, handshake: _PendingHandshake) -> None:
        """Count a pending handshake. Above the limit, drop the oldest pending handshake."""
        self._pending[handshake] = None
        if len(self._pending) > self._most:
            oldest = next(iter(self._pending))
            del self._pending[oldest]
            oldest.drop(_TOO_MANY)

    def end(self, handshake: _PendingHandshake) -> None:
        """Remove a handshake that has succeeded or failed."""
        self._pending.pop(handshake, None)

    def enqueue(self, handshake: _PendingHandshake) -> bool:
        """Queue a handshake if the time slice is used up or other handshakes are queued. Returns False if the handshake
        may start now.
        """
        if not self._queue and not self._scheduler.is_over:
            self._scheduler.spend(_HANDSHAKE_COST_S)
            return False
        self.end(handshake)
        self._queue.append(handshake)
        if len(self._queue) == 1:
            self._scheduler.wait(self)
        elif len(self._queue) > _MAX_QUEUED:
            self._queue.popleft().drop(_TOO_MANY)
        return True

    def work(self) -> None:
        """Start some queued handshakes; called by the fair scheduler."""
        left = _STARTS_PER_SLICE
        while self._queue and left:
            handshake = self._queue.popleft()
            if handshake.is_connected:
                self.begin(handshake)
                self._scheduler.spend(_HANDSHAKE_COST_S)
                handshake.start()
                left -= 1
        if self._queue:
            self._scheduler.wait(self)

    async def secured(self, transport: asyncio.Transport, handshake: _PendingHandshake) -> asyncio.Transport | None:
        """Run a TLS handshake. Returns the encrypted transport, or None if the handshake fails."""
        loop = asyncio.get_running_loop()
        self.begun += 1
        try:
            return await loop.start_tls(
                transport,
                handshake,
                self._context,
                server_side=True,
                ssl_handshake_timeout=_HANDSHAKE_TIMEOUT_S,
                ssl_shutdown_timeout=_SHUTDOWN_TIMEOUT_S,
            )
        except OSError as error:  # OSError includes ssl.SSLError and a timeout
            handshake.drop(reason_of(error))
            return None

    def failed(self, client: str, reason: str) -> None:
        """Log and count a failed handshake."""
        self._failures.record(client, reason, asyncio.get_running_loop().time())

    def protocol(self) -> asyncio.Protocol:
        """Create the protocol of a client after its handshake."""
        return cast(asyncio.Protocol, self._factory())


class _Decoder(Protocol):
    """Interface of the protocol object that `start_tls` installs: methods that it has in both asyncio and uvloop."""

    def get_buffer(self, sizehint: int) -> memoryview: ...

    def buffer_updated(self, nbytes: int) -> None: ...


class _PendingHandshake(asyncio.Protocol):
    """A client during its TLS handshake. Stores data that arrives early for the protocol of the connection."""

    def __init__(self, handshakes: Handshakes) -> None:
        self._handshakes = handshakes
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._timer: asyncio.TimerHandle | None = None
        self._first = b""
        """Bytes received before the handshake starts."""
        self._is_queued = self._has_started = False
        self._early: list[bytes] = []
        self._is_lost = self._has_failed = False
        self._client = ""
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # save the client address now, because it may be unavailable after a failed handshake
        self._client = _address(transport)
        self._timer = asyncio.get_running_loop().call_later(_HANDSHAKE_TIMEOUT_S, self.drop, _SILENT)
        self._handshakes.begin(self)

    def data_received(self, data: bytes) -> None:
        if self._has_started:
            self._early.append(data)
            return
        self._first += data
        if not may_begin(self._first) or len(self._first) > _MAX_HELLO_BYTES:
            self.drop(_NO_TLS)
        elif len(self._first) >= _MIN_HELLO_BYTES and not self._is_queued:
            self._is_queued = self._handshakes.enqueue(self)
            if self._is_queued:
                self._transport.pause_reading()
            else:
                self.start()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._has_started:
            self._handshakes.end(self)

    def drop(self, reason: str) -> None:
        """Drop the connection; only the first reason is logged."""
        if not self._has_failed:
            self._has_failed = True
            self._handshakes.failed(self._client, reason)
        self._transport.abort()

    @property
    def is_connected(self) -> bool:
        """Whether the connection to the client is still open."""
        return not (self._is_lost or self._transport.is_closing())

    def start(self) -> None:
        """Start the TLS handshake."""
        self._has_started = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        # `start_tls` needs one loop iteration before its protocol can receive the first TLS message
        self._task = driven(self._run_handshake(), loop)
        loop.call_soon(self._feed_first)

    def _feed_first(self) -> None:
        first, self._first = self._first, b""
        if self.is_connected:
            decoder = cast(_Decoder, self._transport.get_protocol())
            decoder.get_buffer(len(first))[: len(first)] = first
            decoder.buffer_updated(len(first))

    async def _run_handshake(self) -> None:
        try:
            secured = await self._handshakes.secured(self._transport, self)
        finally:
            self._handshakes.end(self)
        # the event loop may report an aborted handshake as finished, so check the connection too
        if secured is None or not self.is_connected:
            return
        protocol = self._handshakes.protocol()
        secured.set_protocol(protocol)
        protocol.connection_made(secured)
        for data in self._early:
            protocol.data_received(data)


def _address(transport: asyncio.BaseTransport) -> str:
    """Return the IP address of the client; empty if the client has already disconnected."""
    name = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) and name else ""


def may_begin(first: bytes) -> bool:
    """Return whether these bytes can start a handshake: a non-empty TLS record with a ClientHello."""
    if first[0] != _HANDSHAKE_RECORD or (len(first) > 1 and first[1] != 3):
        return False
    if len(first) < _MIN_HELLO_BYTES - 1:
        return True
    return 0 < int.from_bytes(first[3:5], "big") <= _MAX_RECORD_BYTES and first[5:6] in (b"", bytes([_CLIENT_HELLO]))
