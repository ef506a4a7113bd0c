"""`Connection`: stages, messages, timer and tasks of one peer connection, from open to close."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, cast

from ophion.peers.connection.channel import Channel
from ophion.peers.connection.context import ConnectionEnd, PeerContext
from ophion.peers.connection.failure import failure_of
from ophion.peers.connection.liveness import PeerLiveness
from ophion.peers.connection.message_reassembly import LARGE
from ophion.peers.connection.send_queue import HARD_LIMIT, SOFT_LIMIT
from ophion.peers.connection.task_group import ConnectionTasks
from ophion.peers.connection.timeouts import StageTimer
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import SharedCapability
from ophion.peers.rlpx.session import (
    DISCONNECT_ID,
    EMPTY,
    HELLO_ID,
    PING_ID,
    PONG_ID,
    DisconnectReceived,
    Event,
    HelloReceived,
    Message,
    OversizedMessage,
    PingReceived,
    Session,
    Stage,
)
from ophion.peers.subprotocol import Attached

log = logging.getLogger(__name__)

_EVENTS_PER_STEP: Final = 8
_OVERSLEPT_S: Final = 1.0
"""If a timer fires at least this many seconds late, this process was stalled. The connection then does not time out the
peer.
"""


class Connection(asyncio.Protocol):
    """One connection from open to close. The task `run` ends when the connection closes."""

    __slots__ = (
        "__weakref__",
        "_attached",
        "_channel",
        "_context",
        "_ending",
        "_is_finished",
        "_is_member",
        "_is_queued",
        "_joined_at",
        "_liveness",
        "_over",
        "_session",
        "_tasks",
        "_timer",
        "is_inbound",
        "local",
        "peer",
        "remote",
    )

    def __init__(self, context: PeerContext, session: Session) -> None:
        self._context = context
        self._session = session
        self._channel = Channel(session, context.traffic)
        self._liveness = PeerLiveness(context.timing, context.clock.monotonic())
        self._tasks = ConnectionTasks()
        self._over: asyncio.Future[None] = context.loop.create_future()
        self._attached: dict[str, Attached] = {}
        self._timer = StageTimer()
        self._ending: ConnectionEnd | None = None
        self._joined_at: float | None = None
        self._is_queued = self._is_finished = self._is_member = False
        self.is_inbound = not session.is_initiator
        self.local: tuple[str, int] = ("", 0)
        self.remote: tuple[str, int] = ("", 0)
        self.peer: Peer | None = None
        """The accepted peer. None before the peer is accepted."""

    @property
    def remote_id(self) -> bytes | None:
        """The public key of the remote node.

        Before the handshake, an outbound connection has the expected key, and an inbound connection has None.
        """
        return self._session.remote_id

    @property
    def is_open(self) -> bool:
        """Whether messages can still be sent to the peer."""
        return self._ending is None

    @property
    def lived(self) -> float:
        """Seconds since the peer was accepted; 0 if the peer was never accepted."""
        return 0.0 if self._joined_at is None else self._context.clock.monotonic() - self._joined_at

    @property
    def waiting_bytes(self) -> int:
        """Bytes queued for the remote node, in the send queue and the transport."""
        return self._channel.waiting_bytes

    # --- main task ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until the socket is closed. Cancelling the task closes the socket without a Disconnect."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks.start(tasks)
                self._wake()
                await self._over
        finally:
            self.abort()
            self._end(DisconnectReason.TCP_ERROR, "cancelled", by_us=True)
            self.finish()
            # break the reference cycles here, because the node rarely runs the garbage collector
            self._tasks.stop()
            if self.peer is not None:
                self.peer.unlink()

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        """Start a task that ends with the connection. Returns False after the end, or for too many tasks."""
        if self._ending is not None:
            work.close()
            return False
        return self._tasks.spawn(work, self._fail)

    def limit(self, shared: SharedCapability, code: int, size: int) -> None:
        """Limit the payload size of messages with this code, after decompression."""
        self._session.limit(shared.offset + code, size)

    # --- sending ------------------------------------------------------------------------------------

    def send(self, shared: SharedCapability, code: int, payload: bytes, may_drop: bool) -> bool:
        """Queue one message. Returns False if the connection has ended or the send queue is full. If the queue is full,
        gossip (`may_drop`) is dropped, and any other message disconnects the peer.
        """
        if self._ending is not None:
            return False
        traffic = self._context.traffic
        if self._channel.waiting_bytes > (SOFT_LIMIT if may_drop else HARD_LIMIT):
            if may_drop:
                traffic.dropped[shared.capability.name] += 1
            else:
                self.disconnect(DisconnectReason.TIMEOUT, "the send queue is full: the peer reads too slowly")
            return False
        self._channel.outbox.put(shared.offset + code, payload)
        traffic.note_sent(shared, code, len(payload))
        self._wake()
        return True

    def disconnect(self, reason: DisconnectReason, text: str = "") -> None:
        """Drop the send queue, send a Disconnect with the reason, and close."""
        self._end(reason, text, by_us=True)

    def probe(self) -> None:
        """Ping the peer with a short timeout. Called when a second connection proves the same node key, because the
        first connection may be dead.
        """
        if self._ending is None and self.peer is not None and not self._liveness.is_probed:
            self._liveness.is_probed = True
            self._say(PING_ID)
            self._arm(self._context.timing.probe)

    def _say(self, message_id: int) -> None:
        """Queue a Ping or Pong, unless the peer is a slow reader."""
        if self._channel.waiting_bytes <= SOFT_LIMIT:
            self._channel.outbox.put(message_id, EMPTY)
            self._context.traffic.note_p2p(self._context.traffic.sent, message_id)
            self._wake()

    # --- socket events ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)
        self.local, self.remote = self._channel.open(transport)
        if self._ending is not None:
            # the connection manager evicted the connection before the event loop had connected the socket
            transport.abort()
            return
        self._channel.write_handshake()
        self._arm(self._context.timing.handshake)

    def data_received(self, data: bytes) -> None:
        if self._ending is not None:
            return
        self._liveness.received(self._context.clock.monotonic())
        self._channel.receive(data)
        self._wake()

    def eof_received(self) -> bool:
        """Handle the end of the data from the remote node. The socket stays open until all received messages are
        processed.
        """
        self._channel.is_remote_closed = True
        if self._ending is not None or not self._channel.has_unread:
            return False
        self._wake()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        reason = self._channel.final_disconnect() if self._ending is None else None
        if reason is not None:
            self._end(reason, "Disconnect received", by_us=False)
        self._end(DisconnectReason.TCP_ERROR, str(error or "closed by the other side"), by_us=False)
        self.finish()
        self._channel.transport = None
        self._channel.drop_queues()
        self._timer.cancel()
        if not self._over.done():
            self._over.set_result(None)

    def pause_writing(self) -> None:
        self._channel.is_writing_paused = True

    def resume_writing(self) -> None:
        self._channel.resume_writing()
        self._wake()

    # --- scheduled work -----------------------------------------------------------------------------

    def _wake(self) -> None:
        if not self._is_queued and self._tasks.is_running and self._ending is None:
            self._is_queued = True
            self._context.scheduler.add(self._step, self._is_member)

    def _step(self) -> bool:
        """Write and read a bounded number of bytes, and return whether work is left. Never raises."""
        # `_is_queued` stays true during the step, so messages that handlers send do not schedule a second step
        if self._ending is None:
            try:
                self._channel.write_some()
                self._read_some()
            except Exception as error:  # noqa: BLE001  # an error ends only this connection
                self._fail(error)
        channel = self._channel
        if channel.is_remote_closed and not channel.has_unread:
            self._end(DisconnectReason.TCP_ERROR, "closed by the other side", by_us=False)
        self._is_queued = self.is_open and (channel.has_unread or channel.can_write)
        return self._is_queued

    def _read_some(self) -> None:
        channel = self._channel
        if not channel.has_unread:
            return
        session, stage = self._session, self._session.stage
        for event in channel.events(_EVENTS_PER_STEP):
            self._handle(event)
            if self._ending is not None:
                return
        if session.stage is not stage:
            channel.write_handshake()
            if session.stage is Stage.HELLO:
                self._arm(self._context.timing.hello)
        self._limit_partial_messages()
        channel.resume_when_read()

    def _note_membership(self) -> None:
        """Record whether the peer is a network member (validator, static or permitted node). The lookup computes a hash
        and its result rarely changes, so this method runs only after Hello and when the timer fires.
        """
        node_id = self._session.remote_id
        self._is_member = self.peer is not None and node_id is not None and self._context.has_own_quota(node_id)

    def _limit_partial_messages(self) -> None:
        """Disconnect the sender of the oldest incomplete message if all incomplete messages together exceed the
        limit.
        """
        context, size, node_id = self._context, self._session.buffered, self._session.remote_id
        if size >= LARGE and node_id is not None and context.has_own_quota(node_id):
            size = 0
        slowest = context.assembly.record(self, size)
        if slowest is not None:
            slowest.disconnect(DisconnectReason.TIMEOUT, "too many incomplete large messages")

    def _handle(self, event: Event) -> None:
        traffic = self._context.traffic
        self._liveness.message_at = self._liveness.received_at
        match event:
            case Message(shared, code, payload):
                traffic.note_received(shared, code, len(payload))
                self._attached[shared.capability.name].received(code, payload)
            case OversizedMessage(shared, code, size):
                traffic.note_received(shared, code, size)
                self._attached[shared.capability.name].oversized(code, size)
            case PingReceived():
                traffic.note_p2p(traffic.received, PING_ID)
                self._say(PONG_ID)
            case HelloReceived():
                traffic.note_p2p(traffic.received, HELLO_ID)
                self._accept_hello(event)
            case DisconnectReceived(reason):
                traffic.note_p2p(traffic.received, DISCONNECT_ID)
                known = DisconnectReason.TCP_ERROR if reason is None else reason
                self._end(known, "Disconnect received", by_us=False)

    def _accept_hello(self, greeted: HelloReceived) -> None:
        """Check the peer after its Hello and attach the shared sub-protocols."""
        self._channel.write_handshake()
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
        context.manager.judge(peer)
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
        context.manager.joined(self, peer)

    # --- timeouts -----------------------------------------------------------------------------------

    def _arm(self, seconds: float) -> None:
        self._timer.arm(self._context.loop, self._context.clock.monotonic() + seconds, seconds, self._on_timer)

    def _on_timer(self) -> None:
        self._note_membership()
        timing, now = self._context.timing, self._context.clock.monotonic()
        if self.peer is not None and self._ending is None and now - self._timer.due_at > _OVERSLEPT_S:
            self._liveness.extend(now)
            self._say(PING_ID)
            self._arm(timing.idle)
        elif self._ending is not None:
            self.abort()
        elif self.peer is None:
            self._end(DisconnectReason.TIMEOUT, f"no {self._session.stage.value} in time", by_us=True)
        else:
            problem = self._check_liveness() or self._channel.stall_error()
            if problem is not None:
                self._end(DisconnectReason.TIMEOUT, problem, by_us=True)

    def _check_liveness(self) -> str | None:
        """Ping a peer that sends nothing, and set the timer again. Returns an error if the peer has timed out."""
        now = self._context.clock.monotonic()
        if self._channel.has_unread:
            # the node has not read all received bytes yet, so the peer is not silent
            self._arm(self._context.timing.idle)
            return None
        problem = self._liveness.problem(now, bool(self._session.buffered))
        if problem is None:
            if self._liveness.needs_ping(now):
                self._say(PING_ID)
            self._arm(self._liveness.next_check_s(now))
        return problem

    # --- disconnect ---------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        """End this connection after an error in handling received bytes or in a task."""
        reason, text, can_send = failure_of(error, self.peer or self.remote)
        self._end(reason, text, by_us=True, can_send=can_send)

    def _end(self, reason: DisconnectReason, text: str, *, by_us: bool, can_send: bool = True) -> None:
        if self._ending is not None:
            return
        self._ending = ConnectionEnd(reason, by_us, text)
        channel, traffic = self._channel, self._context.traffic
        channel.drop_queues()
        if channel.transport is not None:
            self._arm(self._context.timing.closing)
            if channel.close(reason, by_us, can_send):
                traffic.note_p2p(traffic.sent, DISCONNECT_ID)
        # finish in the next loop iteration, because the caller may be in the middle of handling a message
        self._context.loop.call_soon(self.finish)

    def abort(self) -> None:
        """Close the socket without a Disconnect."""
        self._channel.abort()

    def finish(self) -> None:
        """Detach the connection from its sub-protocols and from the connection manager. A second call does nothing. The
        manager calls this when a newer connection to the same node replaces this connection.
        """
        if self._is_finished:
            return
        self._is_finished = True
        assert self._ending is not None
        self._tasks.cancel()
        for attached in self._attached.values():
            try:
                attached.closed()
            except Exception:
                log.exception("sub-protocol failed on close peer=%r", self.peer)
        self._attached.clear()
        self._context.assembly.record(self, 0)
        self._session.close()
        ending = self._ending
        side, reason = "local" if ending.by_us else "remote", ending.reason.label
        self._context.traffic.disconnected[side, reason] += 1
        if self.peer is not None:
            log.debug("peer disconnected peer=%r by=%s reason=%s text=%s", self.peer, side, reason, ending.text)
        else:
            log.debug("connection closed remote=%s by=%s reason=%s text=%s", self.remote, side, reason, ending.text)
        self._context.manager.left(self, ending)
