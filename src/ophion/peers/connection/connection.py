"""`Connection`: one TCP socket with its RLPx session, send queue, timer and tasks."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple, Protocol, cast

from msgspec import Struct, field

from ophion.errors import DecodeError, StorageError
from ophion.native.wire import WireError
from ophion.peers.connection.message_reassembly import LARGE, MessageReassembly
from ophion.peers.connection.receive_scheduler import ReceiveScheduler
from ophion.peers.connection.send_queue import HARD_LIMIT, SOFT_LIMIT, Outbox
from ophion.peers.connection.timeouts import Timing
from ophion.peers.connection.traffic import Traffic
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Shared
from ophion.peers.rlpx.session import (
    DISCONNECT_ID,
    EMPTY,
    HELLO_ID,
    PING_ID,
    PONG_ID,
    Event,
    Greeted,
    Left,
    Message,
    Oversized,
    Pinged,
    Session,
    Stage,
)
from ophion.peers.subprotocol import Attached, Subprotocol
from ophion.primitives.enode import socket_ip
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

_READ_AHEAD: Final = 256 * 1024
"""Limit of received but unprocessed bytes. Above it, the connection stops reading from the socket."""
_WRITE_AHEAD: Final = 256 * 1024
"""Limit of encrypted bytes in the transport. Above it, the connection stops encrypting messages."""
_EVENTS_PER_STEP: Final = 8
_BYTES_PER_STEP: Final = 64 * 1024
"""Received bytes per step. Decompressed they are up to 1.4 MB, which takes about a millisecond."""
_MAX_FINAL_EVENTS: Final = 256
"""Limit of events that a closed connection still decodes in search of a Disconnect."""
_OVERSLEPT_S: Final = 1.0
"""A timer that is later than this shows a stall of this process. The peer is then not timed out."""
MAX_TASKS: Final = 16
"""Limit of concurrent tasks per peer."""


class ConnectionManager(Protocol):
    """Accepts or rejects connections and tracks the accepted ones."""

    def judge(self, peer: Peer) -> None:
        """Check a peer after Hello. Raises `PeerMisbehaved` with the disconnect reason to reject it."""

    def joined(self, connection: Connection, peer: Peer) -> None:
        """Called when the peer is accepted and its sub-protocols are attached."""

    def left(self, connection: Connection, ending: Ending) -> None:
        """Called once when a connection has ended, even if it ended before Hello."""


class Ending(NamedTuple):
    """How a connection ended."""

    reason: DisconnectReason
    by_us: bool
    text: str


class PeerContext(Struct, frozen=True):
    """State and callbacks that all connections of a node share."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    scheduler: ReceiveScheduler
    traffic: Traffic
    keeper: ConnectionManager
    subprotocols: Sequence[Subprotocol] = ()
    timing: Timing = field(default_factory=Timing)
    assembly: MessageReassembly[Connection] = field(default_factory=MessageReassembly)
    has_own_quota: Callable[[bytes], bool] = lambda node_id: False
    """Whether a node (static peer, validator, permitted) is exempt from the limit of partly received messages."""


class Connection(asyncio.Protocol):
    """One connection from open to close. The task `run` ends when the connection closes."""

    __slots__ = (
        "__weakref__",
        "_attached",
        "_children",
        "_context",
        "_due_at",
        "_ending",
        "_received_at",
        "_inbox",
        "_inbox_size",
        "_is_finished",
        "_is_member",
        "_is_pinged",
        "_is_probed",
        "_is_queued",
        "_is_reading_paused",
        "_is_remote_closed",
        "_is_writing_paused",
        "_joined_at",
        "_message_at",
        "_outbox",
        "_over",
        "_session",
        "_stuck_at",
        "_tasks",
        "_timer",
        "_transport",
        "is_inbound",
        "local",
        "peer",
        "remote",
    )

    def __init__(self, context: PeerContext, session: Session) -> None:
        self._context = context
        self._session = session
        self._transport: asyncio.Transport | None = None
        self._over: asyncio.Future[None] = context.loop.create_future()
        self._tasks: asyncio.TaskGroup | None = None
        self._children: set[asyncio.Task[None]] = set()
        self._attached: dict[str, Attached] = {}
        self._inbox: deque[bytes] = deque()
        self._inbox_size = 0
        self._outbox = Outbox()
        self._timer: asyncio.TimerHandle | None = None
        self._ending: Ending | None = None
        self._received_at = self._message_at = context.clock.monotonic()
        self._joined_at: float | None = None
        self._due_at = 0.0
        self._stuck_at = 0
        self._is_pinged = self._is_probed = self._is_queued = self._is_finished = False
        self._is_reading_paused = self._is_writing_paused = self._is_remote_closed = self._is_member = False
        self.is_inbound = not session.is_initiator
        self.local: tuple[str, int] = ("", 0)
        self.remote: tuple[str, int] = ("", 0)
        self.peer: Peer | None = None
        """Set when the peer is accepted."""

    @property
    def remote_id(self) -> bytes | None:
        """The public key of the remote node. Outbound: the expected key. Inbound: None before the handshake."""
        return self._session.remote_id

    @property
    def is_open(self) -> bool:
        """Whether messages can still be sent."""
        return self._ending is None

    @property
    def lived(self) -> float:
        """Seconds since the peer was accepted; 0 if it never was."""
        return 0.0 if self._joined_at is None else self._context.clock.monotonic() - self._joined_at

    @property
    def waiting_bytes(self) -> int:
        """Bytes queued for the remote node, in the send queue and the transport."""
        return self._outbox.size + (0 if self._transport is None else self._transport.get_write_buffer_size())

    # --- main task ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until the socket is closed. Cancelling closes it without a Disconnect."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                self._wake()
                await self._over
        finally:
            self.abort()
            self._end(DisconnectReason.TCP_ERROR, "cancelled", by_us=True)
            self._finish()
            # break the reference cycles: the node runs the garbage collector rarely
            self._tasks = None
            if self.peer is not None:
                self.peer.unlink()

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        """Start a task that ends with the connection; see `Peer.spawn`."""
        if self._ending is not None or self._tasks is None or len(self._children) >= MAX_TASKS:
            work.close()
            return False
        task = self._tasks.create_task(self._guarded(work))
        self._children.add(task)
        task.add_done_callback(self._children.discard)
        # closes a coroutine that never started, because its task was cancelled before the first step
        task.add_done_callback(lambda _: work.close())
        return True

    def limit(self, shared: Shared, code: int, size: int) -> None:
        """See `Peer.limit`."""
        self._session.limit(shared.offset + code, size)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001  # the boundary: no error leaves a connection
            self._fail(error)

    # --- sending ------------------------------------------------------------------------------------

    def send(self, shared: Shared, code: int, payload: bytes, may_drop: bool) -> bool:
        """Queue one message; see `Peer.send`."""
        if self._ending is not None:
            return False
        traffic = self._context.traffic
        if self.waiting_bytes > (SOFT_LIMIT if may_drop else HARD_LIMIT):
            if may_drop:
                traffic.dropped[shared.capability.name] += 1
            else:
                self.disconnect(DisconnectReason.TIMEOUT, "the send queue is full: the peer reads too slowly")
            return False
        self._outbox.put(shared.offset + code, payload)
        traffic.note_sent(shared, code, len(payload))
        self._wake()
        return True

    def disconnect(self, reason: DisconnectReason, text: str = "") -> None:
        """Drop the send queue, send a Disconnect with the reason, and close."""
        self._end(reason, text, by_us=True)

    def probe(self) -> None:
        """Ping the peer with a short timeout, because a second connection has proven the same key."""
        if self._ending is None and self.peer is not None and not self._is_probed:
            self._is_probed = True
            self._say(PING_ID)
            self._arm(self._context.timing.probe)

    def _say(self, message_id: int) -> None:
        """Queue a Ping or Pong, unless the peer is a slow reader."""
        if self.waiting_bytes <= SOFT_LIMIT:
            self._outbox.put(message_id, EMPTY)
            self._context.traffic.note_p2p(self._context.traffic.sent, message_id)
            self._wake()

    # --- socket events ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_WRITE_AHEAD)
        self.local = _address(transport.get_extra_info("sockname"))
        self.remote = _address(transport.get_extra_info("peername"))
        if self._ending is not None:
            # evicted before the event loop had connected the socket
            transport.abort()
            return
        self._write(self._session.take_output())
        self._arm(self._context.timing.handshake)

    def data_received(self, data: bytes) -> None:
        if self._ending is not None:
            return
        self._context.traffic.bytes_received += len(data)
        self._received_at = self._context.clock.monotonic()
        self._is_pinged = self._is_probed = False
        self._inbox.append(data)
        self._inbox_size += len(data)
        if self._inbox_size >= _READ_AHEAD and not self._is_reading_paused and self._transport is not None:
            self._transport.pause_reading()
            self._is_reading_paused = True
        self._wake()

    def eof_received(self) -> bool:
        """The remote node has closed. Keep the socket while received messages are unread."""
        self._is_remote_closed = True
        if self._ending is not None or not self._has_unread():
            return False
        self._wake()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        if self._ending is None and self._has_unread():
            self._read_final_disconnect()
        self._end(DisconnectReason.TCP_ERROR, str(error or "closed by the other side"), by_us=False)
        self._finish()
        self._transport = None
        self._disarm()
        self._inbox.clear()
        if not self._over.done():
            self._over.set_result(None)

    def pause_writing(self) -> None:
        self._is_writing_paused = True

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self._stuck_at = 0
        self._wake()

    def _write(self, data: bytes) -> None:
        if data and self._transport is not None and not self._transport.is_closing():
            self._context.traffic.bytes_sent += len(data)
            self._transport.write(data)

    # --- scheduled work -----------------------------------------------------------------------------

    def _has_unread(self) -> bool:
        return bool(self._inbox) or self._session.has_more

    def _wake(self) -> None:
        if not self._is_queued and self._tasks is not None and self._ending is None:
            self._is_queued = True
            self._context.scheduler.add(self._step, self._is_member)

    def _step(self) -> bool:
        """Write and read a little; return whether work is left. Called by `ReceiveScheduler`, never raises."""
        # `_is_queued` stays set meanwhile, so messages that handlers send do not schedule a second step
        if self._ending is None:
            try:
                self._write_some()
                self._read_some()
            except Exception as error:  # noqa: BLE001  # the boundary: no error leaves a connection
                self._fail(error)
        if self._is_remote_closed and not self._has_unread():
            self._end(DisconnectReason.TCP_ERROR, "closed by the other side", by_us=False)
        can_write = bool(self._outbox) and not self._is_writing_paused
        self._is_queued = self.is_open and (self._has_unread() or can_write)
        return self._is_queued

    def _write_some(self) -> None:
        if self._outbox and not self._is_writing_paused:
            self._write(self._session.seal(self._outbox.take()))

    def _read_some(self) -> None:
        if not self._has_unread():
            return
        session, stage = self._session, self._session.stage
        for event in session.receive(self._next_bytes(), _EVENTS_PER_STEP):
            self._handle(event)
            if self._ending is not None:
                return
        if session.stage is not stage:
            self._write(session.take_output())
            if session.stage is Stage.HELLO:
                self._arm(self._context.timing.hello)
        self._limit_partial_messages()
        if self._is_reading_paused and not self._has_unread() and self._transport is not None:
            self._is_reading_paused = False
            self._transport.resume_reading()

    def _note_membership(self) -> None:
        """Look up whether the peer is a member. Not done per message, because it costs a hash and rarely changes."""
        node_id = self._session.remote_id
        self._is_member = self.peer is not None and node_id is not None and self._context.has_own_quota(node_id)

    def _limit_partial_messages(self) -> None:
        """Disconnect the sender of the oldest incomplete message if all incomplete messages exceed the limit."""
        context, size, node_id = self._context, self._session.buffered, self._session.remote_id
        if size >= LARGE and node_id is not None and context.has_own_quota(node_id):
            size = 0
        slowest = context.assembly.note(self, size)
        if slowest is not None:
            slowest.disconnect(DisconnectReason.TIMEOUT, "too many incomplete large messages")

    def _next_bytes(self) -> bytes:
        if self._session.has_more:
            return b""
        data = self._inbox.popleft()
        if len(data) > _BYTES_PER_STEP:
            self._inbox.appendleft(data[_BYTES_PER_STEP:])
            data = data[:_BYTES_PER_STEP]
        self._inbox_size -= len(data)
        return data

    def _handle(self, event: Event) -> None:
        traffic = self._context.traffic
        self._message_at = self._received_at
        match event:
            case Message(shared, code, payload):
                traffic.note_received(shared, code, len(payload))
                self._attached[shared.capability.name].received(code, payload)
            case Oversized(shared, code, size):
                traffic.note_received(shared, code, size)
                self._attached[shared.capability.name].oversized(code, size)
            case Pinged():
                traffic.note_p2p(traffic.received, PING_ID)
                self._say(PONG_ID)
            case Greeted():
                traffic.note_p2p(traffic.received, HELLO_ID)
                self._greet(event)
            case Left(reason):
                traffic.note_p2p(traffic.received, DISCONNECT_ID)
                known = DisconnectReason.TCP_ERROR if reason is None else reason
                self._end(known, "Disconnect received", by_us=False)

    def _greet(self, greeted: Greeted) -> None:
        """Check the peer after its Hello and attach the shared sub-protocols."""
        self._write(self._session.take_output())
        context = self._context
        peer = Peer(
            self,
            greeted.hello,
            greeted.shared,
            local=self.local,
            remote=self.remote,
            is_inbound=self.is_inbound,
            since=context.clock.now(),
        )
        context.keeper.judge(peer)
        self.peer = peer
        self._note_membership()
        self._joined_at = context.clock.monotonic()
        self._arm(context.timing.idle)
        versions = {one.capability.name: one.capability.version for one in greeted.shared}
        for subprotocol in context.subprotocols:
            name = subprotocol.capabilities[0].name
            if name in versions:
                self._attached[name] = subprotocol.attach(peer, versions[name])
        context.traffic.connected["inbound" if self.is_inbound else "outbound"] += 1
        log.debug("peer connected peer=%r client=%s caps=%s", peer, peer.hello.client_id, ",".join(peer.hello.caps))
        context.keeper.joined(self, peer)

    # --- timeouts -----------------------------------------------------------------------------------

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._due_at = self._context.clock.monotonic() + seconds
        self._timer = self._context.loop.call_later(seconds, self._on_timer)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        self._note_membership()
        timing, now = self._context.timing, self._context.clock.monotonic()
        if self.peer is not None and self._ending is None and now - self._due_at > _OVERSLEPT_S:
            # this process was stalled and may have unread bytes of the peer, so the peer gets one more idle period
            self._received_at = self._message_at = max(self._received_at, now - timing.idle)
            self._is_pinged = True
            self._say(PING_ID)
            self._arm(timing.idle)
        elif self._ending is not None:
            self.abort()
        elif self.peer is None:
            self._end(DisconnectReason.TIMEOUT, f"no {self._session.stage.value} in time", by_us=True)
        else:
            problem = self._silence() or self._stuck()
            if problem is not None:
                self._end(DisconnectReason.TIMEOUT, problem, by_us=True)

    def _silence(self) -> str | None:
        """Ping a silent peer and set the timer again; return the error when the peer has timed out."""
        timing, now = self._context.timing, self._context.clock.monotonic()
        if self._has_unread():
            # received bytes are unread, so the peer is not silent
            self._arm(timing.idle)
            return None
        if self._is_probed:
            return "no answer to a ping after a second connection proved the same key"
        if self._session.buffered and now - self._message_at >= timing.message:
            return f"a message takes longer than {timing.message:g} s to arrive"
        silent = now - self._received_at
        if silent >= 2 * timing.idle:
            return f"nothing received for {silent:.0f} s"
        if silent >= timing.idle and not self._is_pinged:
            self._is_pinged = True
            self._say(PING_ID)
        self._arm((2 if silent >= timing.idle else 1) * timing.idle - silent)
        return None

    def _stuck(self) -> str | None:
        """Return an error if the peer has read no bytes since the last check."""
        waiting = self._transport.get_write_buffer_size() if self._transport and self._is_writing_paused else 0
        is_stuck = waiting > 0 and waiting == self._stuck_at
        self._stuck_at = waiting
        return f"the peer reads none of {waiting} buffered bytes" if is_stuck else None

    # --- disconnect ---------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        """End this connection after an error in handling its bytes."""
        match error:
            case PeerMisbehaved():
                self._end(error.reason, error.text, by_us=True)
            case WireError():
                self._end(DisconnectReason.BREACH, str(error), by_us=True, can_speak=False)
            case DecodeError():
                self._end(DisconnectReason.BREACH, str(error), by_us=True)
            case StorageError():
                log.error("cannot handle message peer=%s error=%s", self.peer or self.remote, error)
                self._end(DisconnectReason.SUBPROTOCOL, "internal error", by_us=True)
            case _:
                log.exception("cannot handle message peer=%s", self.peer or self.remote, exc_info=error)
                self._end(DisconnectReason.SUBPROTOCOL, "internal error", by_us=True)

    def _end(self, reason: DisconnectReason, text: str, *, by_us: bool, can_speak: bool = True) -> None:
        if self._ending is not None:
            return
        self._ending = Ending(reason, by_us, text)
        self._outbox.clear()
        self._inbox.clear()
        transport = self._transport
        if transport is not None:
            self._arm(self._context.timing.closing)
            if self._is_reading_paused:
                # keep reading to notice that the remote node closes
                transport.resume_reading()
            has_keys = self._session.stage in (Stage.HELLO, Stage.OPEN)
            if by_us and has_keys and not self._is_remote_closed:
                # keep reading, and discard, until the remote node closes: closing with unread bytes sends a TCP reset,
                # which could destroy the Disconnect
                self._write(self._session.take_output())
                if can_speak:
                    self._write(self._session.seal_disconnect(reason))
                    self._context.traffic.note_p2p(self._context.traffic.sent, DISCONNECT_ID)
                else:
                    transport.write_eof()
            else:
                transport.close()
        # deferred, because the caller may be in the middle of an update
        self._context.loop.call_soon(self._finish)

    def abort(self) -> None:
        """Close the socket at once."""
        if self._transport is not None:
            self._transport.abort()

    def finish_now(self) -> None:
        """Release the peer at once. The connection manager calls this when a newer connection replaces this one."""
        self._finish()

    def _finish(self) -> None:
        if self._is_finished:
            return
        self._is_finished = True
        assert self._ending is not None
        for task in tuple(self._children):
            task.cancel()
        for attached in self._attached.values():
            try:
                attached.closed()
            except Exception:
                log.exception("sub-protocol failed on close peer=%r", self.peer)
        self._attached.clear()
        self._context.assembly.note(self, 0)
        self._session.close()
        ending = self._ending
        side, reason = "local" if ending.by_us else "remote", ending.reason.label
        self._context.traffic.disconnected[side, reason] += 1
        if self.peer is not None:
            log.debug("peer disconnected peer=%r by=%s reason=%s text=%s", self.peer, side, reason, ending.text)
        else:
            log.debug("connection closed remote=%s by=%s reason=%s text=%s", self.remote, side, reason, ending.text)
        self._context.keeper.left(self, ending)

    def _read_final_disconnect(self) -> None:
        """Search the unread bytes of a closed socket for a Disconnect with its reason."""
        try:
            while self._has_unread():
                for event in self._session.receive(self._next_bytes(), _MAX_FINAL_EVENTS):
                    if isinstance(event, Left) and event.reason is not None:
                        self._end(event.reason, "Disconnect received", by_us=False)
                        return
        except (PeerMisbehaved, WireError):
            pass  # the connection ends in any case


def _address(name: Sequence[Any] | None) -> tuple[str, int]:
    return (socket_ip(str(name[0])), int(name[1])) if name else ("", 0)
