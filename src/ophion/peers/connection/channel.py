"""`Channel`: the socket of a connection with its RLPx session, receive buffer and send queue."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ophion.native.wire import WireError
from ophion.peers.connection.send_queue import SendQueue
from ophion.peers.connection.traffic import Traffic
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.rlpx.session import DisconnectReceived, Event, Session, Stage
from ophion.primitives.enode import socket_ip

_READ_AHEAD: Final = 256 * 1024
"""Limit of received but unprocessed bytes. Above this limit, the connection stops reading from the socket."""
_WRITE_AHEAD: Final = 256 * 1024
"""Limit of encrypted bytes in the transport. Above this limit, the connection stops encrypting messages."""
_BYTES_PER_STEP: Final = 64 * 1024
"""Limit of received bytes that one receive step processes. 64 KiB decompress to at most 1.4 MB, which takes about a
millisecond.
"""
_MAX_FINAL_EVENTS: Final = 256
"""Maximum number of events to decode after the socket has closed, to find a Disconnect."""


class Channel:
    """Buffers the received and the sent bytes of one connection, within limits."""

    __slots__ = (
        "_inbox",
        "_is_reading_paused",
        "_stuck_at",
        "_traffic",
        "inbox_bytes",
        "is_remote_closed",
        "is_writing_paused",
        "outbox",
        "session",
        "transport",
    )

    def __init__(self, session: Session, traffic: Traffic) -> None:
        self.session = session
        self.transport: asyncio.Transport | None = None
        """The transport of the socket. None before the socket is connected and after the socket is closed."""
        self.outbox = SendQueue()
        self.inbox_bytes = 0
        """Number of received but unprocessed bytes."""
        self.is_writing_paused = self.is_remote_closed = self._is_reading_paused = False
        self._inbox: deque[bytes] = deque()
        self._traffic = traffic
        self._stuck_at = 0

    def open(self, transport: asyncio.Transport) -> tuple[tuple[str, int], tuple[str, int]]:
        """Attach a connected socket to the channel. Returns the local and the remote address of the socket."""
        self.transport = transport
        transport.set_write_buffer_limits(high=_WRITE_AHEAD)
        return _address(transport.get_extra_info("sockname")), _address(transport.get_extra_info("peername"))

    # --- receiving ----------------------------------------------------------------------------------

    @property
    def has_unread(self) -> bool:
        """Whether some received bytes are not processed yet."""
        return bool(self._inbox) or self.session.has_more

    def receive(self, data: bytes) -> None:
        """Buffer bytes from the socket. Stops reading from the socket when the buffer is full."""
        self._traffic.bytes_received += len(data)
        self._inbox.append(data)
        self.inbox_bytes += len(data)
        if self.inbox_bytes >= _READ_AHEAD and not self._is_reading_paused and self.transport is not None:
            self.transport.pause_reading()
            self._is_reading_paused = True

    def events(self, max_events: int) -> Iterable[Event]:
        """Process received bytes. Returns at most `max_events` events of the session, such as received messages."""
        return self.session.receive(self._next_bytes(), max_events)

    def resume_reading(self) -> None:
        """Resume reading from the socket."""
        if self._is_reading_paused and self.transport is not None:
            self._is_reading_paused = False
            self.transport.resume_reading()

    def resume_when_read(self) -> None:
        """Resume reading from the socket if all received bytes are processed."""
        if not self.has_unread:
            self.resume_reading()

    def _next_bytes(self) -> bytes:
        if self.session.has_more:
            return b""
        data = self._inbox.popleft()
        if len(data) > _BYTES_PER_STEP:
            self._inbox.appendleft(data[_BYTES_PER_STEP:])
            data = data[:_BYTES_PER_STEP]
        self.inbox_bytes -= len(data)
        return data

    # --- sending ------------------------------------------------------------------------------------

    @property
    def waiting_bytes(self) -> int:
        """Bytes queued for the remote node, in the send queue and the transport."""
        return self.outbox.size + (0 if self.transport is None else self.transport.get_write_buffer_size())

    @property
    def can_write(self) -> bool:
        """Whether messages are queued and the socket accepts more bytes."""
        return bool(self.outbox) and not self.is_writing_paused

    def write_some(self) -> None:
        """Encrypt and write the next messages of the send queue."""
        if self.outbox and not self.is_writing_paused:
            self.write(self.session.seal(self.outbox.take()))

    def write_handshake(self) -> None:
        """Write the handshake bytes of the session: auth, ack or Hello."""
        self.write(self.session.take_output())

    def write(self, data: bytes) -> None:
        """Write encrypted bytes to the socket."""
        if data and self.transport is not None and not self.transport.is_closing():
            self._traffic.bytes_sent += len(data)
            self.transport.write(data)

    def resume_writing(self) -> None:
        """Record that the transport of the socket accepts bytes again."""
        self.is_writing_paused = False
        self._stuck_at = 0

    def stall_error(self) -> str | None:
        """Return an error text if bytes are buffered and the remote node has read nothing since the last check,
        otherwise None.
        """
        waiting = self.transport.get_write_buffer_size() if self.transport and self.is_writing_paused else 0
        is_stuck = waiting > 0 and waiting == self._stuck_at
        self._stuck_at = waiting
        return f"the peer reads none of {waiting} buffered bytes" if is_stuck else None

    # --- close --------------------------------------------------------------------------------------

    def drop_queues(self) -> None:
        """Drop the received bytes and the queued messages."""
        self.outbox.clear()
        self._inbox.clear()

    def close(self, reason: DisconnectReason, by_us: bool, can_send: bool) -> bool:
        """Close the socket. If this node ends the connection (`by_us`) and keys are agreed, send a Disconnect or the
        end of data instead; the remote node then closes. Returns whether a Disconnect was sent.
        """
        assert self.transport is not None
        # keep reading, because this node must notice when the remote node closes the connection
        self.resume_reading()
        has_keys = self.session.stage in (Stage.HELLO, Stage.OPEN)
        if not by_us or not has_keys or self.is_remote_closed:
            self.transport.close()
            return False
        # do not close the socket yet: a close with unread bytes sends a TCP reset, and the remote node could lose the
        # Disconnect
        self.write_handshake()
        if can_send:
            self.write(self.session.seal_disconnect(reason))
        else:
            self.transport.write_eof()
        return can_send

    def final_disconnect(self) -> DisconnectReason | None:
        """Return the reason of a Disconnect in the unread bytes of a closed socket, or None without a Disconnect."""
        try:
            while self.has_unread:
                for event in self.events(_MAX_FINAL_EVENTS):
                    if isinstance(event, DisconnectReceived) and event.reason is not None:
                        return event.reason
        except (PeerMisbehaved, WireError):
            pass  # ignore the error, because the connection ends anyway
        return None

    def abort(self) -> None:
        """Close the socket without a Disconnect."""
        if self.transport is not None:
            self.transport.abort()


def _address(name: Sequence[Any] | None) -> tuple[str, int]:
    return (socket_ip(str(name[0])), int(name[1])) if name else ("", 0)
