"""TLS handshakes that are under way: a limited number, of a limited time, some in each turn of the loop.

A connection has a place (places.py) only when it speaks HTTP or WebSocket, and a client need not come so far: thousands
that begin a handshake and do not go on would each hold a socket and some hundred kilobytes. So plain sockets are
accepted, counted, and secured here; when there are too many, the oldest gives way, since an honest client needs
milliseconds.

A handshake takes a millisecond, and all pending ones may start at the same moment. The fair scheduler queues them and
starts some in each iteration of the loop. Bytes that cannot start a handshake close the connection before OpenSSL sees
them.
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

MOST: Final = 256
"""Handshakes at a time, without those in line: they wait for this node, and not it for them."""
_MAX_IN_LINE: Final = 2048
_TIMEOUT_S: Final = 10.0
_GOODBYE_S: Final = 5.0
"""How long a connection that is closed here is kept for a client that does not say goodbye too."""
_AT_A_TIME: Final = 2
"""How many of those in line begin in one turn of the loop."""
_SHAKING_S: Final = 0.001
"""What the answer to a first message costs: keys, a signature, and all that is made for the connection."""
_HANDSHAKE_RECORD, _CLIENT_HELLO = 0x16, 0x01
_MAX_RECORD_BYTES: Final = 1 << 14
_FIRST_BYTES: Final = 6
_MAX_FIRST_BYTES: Final = 32 * 1024
"""What a client may send before it has been answered; honest ones send some hundred bytes, or two thousand."""
_NO_TLS: Final = "the client speaks something else than TLS"
_SILENT: Final = "the client has not begun in time"
_TOO_MANY: Final = "too many handshakes at the same time"


class Handshakes:
    """Makes connections of one service, each secured before its protocol hears of it."""

    def __init__(
        self,
        context: ssl.SSLContext,
        factory: Callable[[], asyncio.BaseProtocol],
        turns: FairScheduler,
        most: int = MOST,
        service: str = "",
    ) -> None:
        """`service` is its name, for people."""
        self._context = context
        self._factory = factory
        self._failures = FailedHandshakes(service)
        self._most = most
        self._under_way: dict[_Newcomer, None] = {}
        self._turns = turns
        self._line: deque[_Newcomer] = deque()
        self.begun = 0
        """Those that came so far that OpenSSL has heard of them."""

    def __len__(self) -> int:
        return len(self._under_way) + len(self._line)

    def newcomer(self) -> asyncio.Protocol:
        """The protocol of a socket that was accepted just now."""
        return _Newcomer(self)

    def begin(self, newcomer: _Newcomer) -> None:
        """One more; the oldest gives way when there are too many."""
        self._under_way[newcomer] = None
        if len(self._under_way) > self._most:
            oldest = next(iter(self._under_way))
            del self._under_way[oldest]
            oldest.give_way(_TOO_MANY)

    def end(self, newcomer: _Newcomer) -> None:
        """One less, however it ended."""
        self._under_way.pop(newcomer, None)

    def line_up(self, newcomer: _Newcomer) -> bool:
        """Whether the first message of a client has to wait; otherwise its handshake may begin now."""
        if not self._line and not self._turns.is_over:
            self._turns.spend(_SHAKING_S)
            return False
        self.end(newcomer)
        self._line.append(newcomer)
        if len(self._line) == 1:
            self._turns.wait(self)
        elif len(self._line) > _MAX_IN_LINE:
            self._line.popleft().give_way(_TOO_MANY)
        return True

    def work(self) -> None:
        """Start some queued handshakes; called by the fair scheduler."""
        left = _AT_A_TIME
        while self._line and left:
            newcomer = self._line.popleft()
            if newcomer.may_shake:
                self.begin(newcomer)
                self._turns.spend(_SHAKING_S)
                newcomer.shake()
                left -= 1
        if self._line:
            self._turns.wait(self)

    async def secured(self, transport: asyncio.Transport, newcomer: _Newcomer) -> asyncio.Transport | None:
        """The same connection, encrypted; None when the client did not get so far."""
        loop = asyncio.get_running_loop()
        self.begun += 1
        try:
            return await loop.start_tls(
                transport,
                newcomer,
                self._context,
                server_side=True,
                ssl_handshake_timeout=_TIMEOUT_S,
                ssl_shutdown_timeout=_GOODBYE_S,
            )
        except OSError as error:  # also what the ssl module raises, and a time-out
            newcomer.give_way(reason_of(error))
            return None

    def failed(self, client: str, reason: str) -> None:
        """One has come to nothing."""
        self._failures.note(client, reason, asyncio.get_running_loop().time())

    def protocol(self) -> asyncio.Protocol:
        """Who talks to a client that has come so far."""
        return cast(asyncio.Protocol, self._factory())


class _Decoder(Protocol):
    """What `start_tls` puts in the place of a protocol, in asyncio and in uvloop alike."""

    def get_buffer(self, sizehint: int) -> memoryview: ...

    def buffer_updated(self, nbytes: int) -> None: ...


class _Newcomer(asyncio.Protocol):
    """A client during its handshake; what it sends together with its end is kept for whoever talks to it then."""

    def __init__(self, handshakes: Handshakes) -> None:
        self._handshakes = handshakes
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._timer: asyncio.TimerHandle | None = None
        self._first = b""
        """What has come before the handshake has begun."""
        self._is_in_line = self._is_shaking = False
        self._early: list[bytes] = []
        self._is_lost = self._has_failed = False
        self._client = ""
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._client = _address(transport)  # a connection that has failed may not know it any more
        self._timer = asyncio.get_running_loop().call_later(_TIMEOUT_S, self.give_way, _SILENT)
        self._handshakes.begin(self)

    def data_received(self, data: bytes) -> None:
        if self._is_shaking:
            self._early.append(data)
            return
        self._first += data
        if not may_begin(self._first) or len(self._first) > _MAX_FIRST_BYTES:
            self.give_way(_NO_TLS)
        elif len(self._first) >= _FIRST_BYTES and not self._is_in_line:
            self._is_in_line = self._handshakes.line_up(self)
            if self._is_in_line:
                self._transport.pause_reading()
            else:
                self.shake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._is_shaking:
            self._handshakes.end(self)

    def give_way(self, reason: str) -> None:
        """Somebody else begins a handshake, this one has not begun, or it has failed; the first reason is the one."""
        if not self._has_failed:
            self._has_failed = True
            self._handshakes.failed(self._client, reason)
        self._transport.abort()

    @property
    def may_shake(self) -> bool:
        """Whether the client is still there."""
        return not (self._is_lost or self._transport.is_closing())

    def shake(self) -> None:
        """The handshake begins."""
        self._is_shaking = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        # it is made in this turn of the loop, gets its connection in the next one, and after that the first message
        self._task = driven(self._shake(), loop)
        loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        first, self._first = self._first, b""
        if self.may_shake:
            decoder = cast(_Decoder, self._transport.get_protocol())
            decoder.get_buffer(len(first))[: len(first)] = first
            decoder.buffer_updated(len(first))

    async def _shake(self) -> None:
        try:
            secured = await self._handshakes.secured(self._transport, self)
        finally:
            self._handshakes.end(self)
        # a loop may call a handshake finished that was ended by `abort`
        if secured is None or not self.may_shake:
            return
        protocol = self._handshakes.protocol()
        secured.set_protocol(protocol)
        protocol.connection_made(secured)
        for data in self._early:
            protocol.data_received(data)


def _address(transport: asyncio.BaseTransport) -> str:
    """Of the client; nothing where it has gone before anybody looked."""
    name = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) and name else ""


def may_begin(first: bytes) -> bool:
    """Whether a handshake may begin like this: a record of TLS that is not empty, with a ClientHello in it."""
    if first[0] != _HANDSHAKE_RECORD or (len(first) > 1 and first[1] != 3):
        return False
    if len(first) < _FIRST_BYTES - 1:
        return True
    return 0 < int.from_bytes(first[3:5], "big") <= _MAX_RECORD_BYTES and first[5:6] in (b"", bytes([_CLIENT_HELLO]))
