"""One HTTP/1.1 client connection.

    bytes -> fast_path ---------------------------> application -> ResponseQueue -> bytes heads sent before
          -> fair scheduler -> RequestReader -------^                                    all other requests

Input is parsed in pieces, for one time slice in each iteration of the event loop. Remaining input waits for the next
slice, and until then the connection reads no more. The connection also stops reading while the client does not read its
answers.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final, cast

from ophion.rpc.errors import NULL, TOO_MANY_BYTES, TOO_MANY_CONNECTIONS, failure
from ophion.rpc.transport.connection_slots import BUSY, UNAUTHENTICATED
from ophion.rpc.transport.graceful_close import GracefulClose
from ophion.rpc.transport.http.compression import WORTH_BYTES
from ophion.rpc.transport.http.fast_path import END_OF_HEAD, HeadMatcher
from ophion.rpc.transport.http.messages import (
    CONTINUE,
    JSON,
    JSON_HEADS,
    KEPT_HEADS,
    Response,
    json_head,
    preflight,
    response_head,
)
from ophion.rpc.transport.http.policy import HttpPolicy, Result, Session
from ophion.rpc.transport.http.reader import RequestForwarder, RequestReader
from ophion.rpc.transport.http.response_queue import MAX_PIPELINED, WEIGHT_OF_A_BYTE, DirectReply, ResponseQueue
from ophion.rpc.transport.http.state import ClientActivity, HttpState
from ophion.rpc.transport.remote_end import address_of, has_gone, is_encrypted
from ophion.rpc.transport.replies import PendingReply
from ophion.runtime.fair_scheduler import LoopShare
from ophion.runtime.memory_budget import WORTH_NOTING

READY: Final = HttpState.READY
AWAITING_BODY: Final = HttpState.AWAITING_BODY
RELAYING: Final = HttpState.RELAYING
OPEN: Final = HttpState.OPEN
ENDING: Final = HttpState.ENDING
REFUSED: Final = HttpState.REFUSED
DETACHED: Final = HttpState.DETACHED

_TOO_MANY_CONNECTIONS: Final = Response(503, (failure(NULL, TOO_MANY_CONNECTIONS()),), JSON)
_OUT_OF_MEMORY: Final = Response(503, (failure(NULL, TOO_MANY_BYTES()),), JSON, b"Retry-After: 1\r\n")
_HALF_CLOSED_TIMEOUT_S: Final = 2.0
"""Time for which answers are still sent to a client that has closed its sending side."""
_UNREAD_IDLENESS_S: Final = 1.0
"""Minimum idleness in seconds of a client that does not read its answers. Such a client is evicted before active
clients.
"""
_LIGHT_BYTES: Final = WORTH_NOTING // WEIGHT_OF_A_BYTE
"""A connection with a single open request below this size is not reported to the memory budget."""
_MAX_LONE_HEAD_BYTES: Final = 4 * 1024
_UNSENT_BYTES: Final = 8 * 1024
"""Bytes in the send buffer from which the client counts as not reading."""


class HttpConnection(asyncio.Protocol):
    """One HTTP client connection."""

    def __init__(self, policy: HttpPolicy, forwarder: RequestForwarder | None = None) -> None:
        self._policy = policy
        self._forwarder = forwarder
        self.scheduler = policy.shared.scheduler
        self.session: Session | None = policy.open_session
        """The session of the current request. If tokens are required, None before the first request."""
        self.state = OPEN if policy.open_session is None else READY
        self.is_ending = False
        """Whether the state is final, so that no more requests are read. `_end` sets this flag together with the
        state.
        """
        self.heads = HeadMatcher(policy.heads)
        self.activity = ClientActivity()
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.answers: ResponseQueue = cast(ResponseQueue, None)
        self._reader: RequestReader | None = None
        self._rest = b""
        """Bytes that have arrived and wait to be parsed."""
        self._lone_head = b""
        """A received request head whose body is missing: a known head (AWAITING_BODY), or a new head to store later."""
        self._is_scheduled = False
        self._share = LoopShare()
        self._graceful_close: GracefulClose | None = None
        self.is_paused = False
        """Whether the send buffer is full, so that nothing more is written."""
        self._is_reading = True
        self._is_in_budget = False

    # --- called by the event loop ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(_UNSENT_BYTES)
        scheduler = self.scheduler if is_encrypted(transport) else None
        max_open = MAX_PIPELINED if self._forwarder is None else self._forwarder.max_open
        self.answers = ResponseQueue(
            self.transport, self._policy.shared.lane, self._settle, self._report_memory, scheduler, max_open
        )
        if not self._policy.opened(self):
            self._end()
            head = response_head(_TOO_MANY_CONNECTIONS, b"", False, False)
            self.transport.write(head + b"".join(_TOO_MANY_CONNECTIONS.body))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._policy.closed(self)
        self._end()
        self._let_go()

    def data_received(self, data: bytes) -> None:
        self.activity.was_active = True
        begun = perf_counter()
        if self.state is READY and (begun < self.scheduler.ends_at or self.scheduler.has_time()):
            # compare with the last HTTP request head first, because a comparison is faster than a search for the end of
            # the head
            heads = self.heads
            is_same = len(data) == heads.size and data.startswith(heads.head)
            end = heads.end if is_same else heads.whole(data)
            if end:
                reply = self.session.handle(data[end:], self)  # type: ignore[union-attr]
                if type(reply) is bytes and 0 < len(reply) < KEPT_HEADS:
                    self.transport.write(JSON_HEADS[len(reply)] + reply)
                else:
                    self._answer_plain(reply, len(data) - end, begun)
                return
            if self._forwarder is None and heads.is_head(data):
                # accept an HTTP request head without its body, because many clients send head and body separately
                self._lone_head, self.state = data, AWAITING_BODY
                self.activity.quiet_s = 0.0
                return
        elif self.state is AWAITING_BODY:
            data, self._lone_head, self.state = self._lone_head + data, b"", READY
            if begun < self.scheduler.ends_at or self.scheduler.has_time():
                end = self.heads.whole(data)
                if end:
                    reply = self.session.handle(data[end:], self)  # type: ignore[union-attr]
                    self._answer_plain(reply, len(data) - end, begun)
                    return
        if self.is_ending:
            if self._graceful_close is not None:
                self._graceful_close.receive(len(data))
        elif self._rest or self.scheduler.is_over:
            self._rest += data
            self._schedule()
        else:
            self._rest = data
            self.work()

    def eof_received(self) -> bool:
        """Handle a client that has closed its sending side. The client still gets answers that are ready soon.

        A disconnect looks the same, so the client's requests are cancelled after a short time.
        """
        if self._rest:
            # handle the unread requests now, because some transports report the end of input while reading is paused
            self.work()
        self._end()
        if self.answers:
            asyncio.get_running_loop().call_later(_HALF_CLOSED_TIMEOUT_S, self._abort_half_closed)
        return bool(self.answers)

    def _abort_half_closed(self) -> None:
        # do not abort a streamed answer: if the client is gone, the next write of this answer fails
        if self.answers and not self.answers.is_streaming:
            self.transport.abort()

    def pause_writing(self) -> None:
        self.is_paused = True
        if self.state is AWAITING_BODY:
            self._rest, self._lone_head = self._lone_head, b""
        if not self.is_ending:
            self.state = OPEN
        self.activity.pause(self.transport.get_write_buffer_size())
        self._set_reading(False)
        self.answers.pause()
        self._report_memory()

    def resume_writing(self) -> None:
        self.is_paused = False
        self.answers.resume()
        self._settle()

    # --- called by the service -------------------------------------------------------------------

    def tick(self, seconds: float) -> None:
        """Close the connection if the client is too slow, idle for too long, or gone."""
        if not self._is_reading and has_gone(self.transport):
            self.transport.abort()
            return
        if (self.answers or self._rest) and not self.is_paused:
            return  # the client waits for a response, so the connection is not idle
        activity, limits = self.activity, self._policy.limits
        is_busy = self._in_message or self.is_paused or self.is_ending
        if not is_busy and activity.tick_idle():
            return
        activity.quiet_s += seconds
        if self.is_paused:
            allowed_s = limits.write_timeout_s
            activity.check_reading(self.transport.get_write_buffer_size())
        elif is_busy:
            allowed_s = limits.read_timeout_s
        else:
            allowed_s = limits.idle_timeout_s
        if activity.quiet_s > allowed_s:
            self.transport.abort()

    def idleness(self) -> float:
        """Return the seconds without a request. `ConnectionSlots` evicts the connection with the highest value."""
        if self.is_paused:
            return _UNREAD_IDLENESS_S + self.activity.quiet_s
        if self.answers:
            return BUSY
        if self.session is not None:
            if self._is_scheduled and self.session.may_call:
                return BUSY
            if not self.session.is_trusted:
                return UNAUTHENTICATED + self.activity.quiet_s
        return self.activity.idleness(self._in_message)

    def evict(self) -> None:
        """Close this idle connection in favour of a new connection."""
        self._end()
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # abort the connection, because a slow reader would keep it open
        else:
            self.transport.close()

    def cut_off(self) -> None:
        """Free the memory of this connection, because all clients together exceed the memory budget."""
        self._rest = b""
        if self.is_ending or self.answers or self.is_paused:
            self.transport.abort()
            self.answers.abandon()
        else:
            self.end_with(_OUT_OF_MEMORY)
            self._flush()
        if self._reader is not None:
            self._reader.close()

    def close(self) -> None:
        """Stop reading requests, because the service stops. Answers already written are still sent."""
        self._end()
        self.transport.close()

    @property
    def client(self) -> str:
        """Return the name in the client's token, or the client's IP address."""
        name = None if self.session is None else self.session.client
        return name or address_of(self.transport)

    # --- called by a gateway ---------------------------------------------------------------------

    def use_session(self, session: Session) -> None:
        """Use the permissions and known request heads of another session for further requests."""
        if session is not self.session:
            self.session = session
            self.heads.use(session.heads)

    def start_session(self, session: Session) -> None:
        """Let the first request of this connection use the fast path with the request heads of `session`."""
        if self.state is OPEN and self._reader is None and not self._rest:
            self.use_session(session)
            self.state = READY

    def relay(self, reply: DirectReply, size: int) -> None:
        """Wait for the answer of another server, which a gateway copies to the client unchanged
        (gateway/fast_path.py).
        """
        self.activity.was_active, self.state = True, RELAYING
        self.answers.expect(reply, size)

    def relayed(self, answer: bytes) -> None:
        """Send the client the answer of the other server, for which `relay` waits."""
        self.answers.delivered()
        self.transport.write(answer)
        if self.state is RELAYING:
            self.state = READY
        else:
            self._settle()

    def queue_relay(self) -> None:
        """Move the answer for which `relay` waits to the response queue. Called if it cannot be copied unchanged."""
        self.answers.queue_direct()
        self._settle()

    def spend(self, seconds: float) -> None:
        """Charge this client for the processor time that its requests used in other components."""
        self.scheduler.spend(seconds)
        self._share.record(seconds, perf_counter())

    def detach(self) -> None:
        """Release everything except the transport, which another protocol takes over."""
        self._end(DETACHED)
        self._let_go()

    def _let_go(self) -> None:
        self._policy.shared.budget.settle(self)
        self._rest = self._lone_head = b""
        self._forwarder = None  # this assignment breaks a reference cycle with the forwarder
        self.answers.abandon()
        if self._reader is not None:
            self._reader.close()

    # --- called by the reader --------------------------------------------------------------------

    def on_request(self) -> None:
        self.activity.quiet_s = 0.0
        reader = cast(RequestReader, self._reader)
        self._answer(reader.refusal or self._result(reader))

    def on_expectation(self) -> None:
        self.answers.put(CONTINUE)

    def on_upgrade(self, rest: bytes) -> bool:
        return self._forwarder is not None and self._forwarder.upgrade(cast(RequestReader, self._reader), rest)

    def end_with(self, response: Response) -> None:
        """Send a final answer before the request is complete, and discard further input."""
        if self.is_ending:
            return
        self._end(REFUSED)
        self._rest = b""
        if self._reader is not None:
            self._reader.keep_alive = False
        self._answer(response)

    def _answer(self, result: Result) -> None:
        reader = self._reader
        if reader is None:
            self._end()
            self.answers.add(result, False)
            return
        if not reader.keep_alive:
            self._end()
        size = reader.worked_bytes
        self.answers.add(
            result, reader.keep_alive, reader.is_old, reader.extra, size, reader.takes_gzip, reader.is_bare
        )

    def _result(self, reader: RequestReader) -> Result:
        if self._forwarder is not None:
            return self._forwarder.result(reader)
        policy = self._policy
        request = reader.request()
        if request.method == b"OPTIONS" and reader.extra and b"access-control-request-method" in request.headers:
            return preflight(request.headers.get(b"access-control-request-headers", b""))
        if not reader.is_call:
            request.address = address_of(self.transport)
            return policy.application.respond(request)
        if policy.guard is not None:
            # set the session for each request, because a proxy may send requests of many clients over one connection
            self.use_session(cast(Session, reader.session))
            if len(request.body) < reader.body_bytes:
                return policy.guard.refusal  # refuse the request, because the reader has dropped its body
        session = self.session
        if session is None:
            return policy.application.respond(request)
        if reader.is_plain():
            self.heads.propose(len(request.body), reader.takes_gzip, reader.has_unused_token)
        return session.handle(request.body, self)

    # --- reading and writing ---------------------------------------------------------------------

    def _end(self, state: HttpState = ENDING) -> None:
        """Enter a final state, in which no more requests are read. A final state does not change again."""
        if not self.is_ending:
            self.state, self.is_ending = state, True

    @property
    def _in_message(self) -> bool:
        return self.state is AWAITING_BODY or (self._reader is not None and self._reader.in_message)

    def _answer_plain(self, reply: Result, size: int, begun: float = 0.0) -> None:
        """Send the reply to a fast-path request, when no other request is open.

        `begun` is the start time of the request, or 0 if the caller measures the duration.
        """
        accepts_gzip = self.heads.accepts_gzip
        if type(reply) is bytes and reply and (not accepts_gzip or len(reply) < WORTH_BYTES):
            self.transport.write(json_head(len(reply)) + reply)
            return
        self.answers.add(reply, size=size, takes_gzip=accepts_gzip)
        if isinstance(reply, PendingReply) and size < _LIGHT_BYTES and not reply.weight:
            if self.state is READY:
                self.state = OPEN  # a small request is pending: its answer is sent later
        else:
            self._flush()
            if begun and type(reply) is Response:
                # the response was computed in this call: charge the client for the computing time, which can be long
                self.scheduler.end(begun, self._share)

    def _answer_known(self, data: bytes, position: int) -> int:
        """Answer a pipelined request if its HTTP head is known. Returns the length of the request, or 0 if the head is
        unknown.
        """
        heads = self.heads
        if self.session is None or self._in_message or self.is_paused or not heads.starts(data, position):
            return 0
        size, accepts_gzip = heads.size, heads.accepts_gzip
        reply = self.session.handle(data[position + heads.end : position + size], self)
        self.answers.add(reply, size=size - heads.end, takes_gzip=accepts_gzip)
        return size

    def work(self) -> None:
        """Parse the input for one time slice."""
        self._is_scheduled = False
        data, position, has_ended = self._rest, 0, self.is_ending
        if has_ended or not data:
            return
        begun, has_many_waiting = perf_counter(), self.scheduler.has_many_waiting
        heads, may_be_known = self.heads, True
        if self.session is not None and not (self._in_message or self.answers or self.is_paused):
            may_be_known = heads.starts(data, 0)
            if may_be_known and heads.size == len(data):
                end = heads.end
                self._rest = b""
                self._answer_plain(self.session.handle(data[end:], self), len(data) - end)
                self._settle()
                self.scheduler.end(begun, self._share)
                return
        while True:
            size = self._answer_known(data, position) if may_be_known else 0
            may_be_known = True
            if not size:
                if self._reader is None:
                    self._reader = RequestReader(self._policy, self)
                size = self._reader.piece(data, position, has_many_waiting)
                is_begun, session = self._in_message, self.session
                is_last = position == 0 and len(data) <= size
                if is_last:
                    self._rest = b""
                self._read(data if is_last else data[position : position + size])
                if is_last and is_begun and self._lone_head:
                    self._learn(self._lone_head + data, 0, session)
                elif not is_begun:
                    self._learn(data, position, session)
                is_lone = is_last and not is_begun and self._in_message and data.endswith(END_OF_HEAD)
                self._lone_head = data if is_lone and len(data) <= _MAX_LONE_HEAD_BYTES else b""
                if is_last:
                    break
            position += size
            if self.is_ending or position >= len(data):
                self._rest = b""
                break
            if has_many_waiting or not self._may_ask or perf_counter() - begun > self.scheduler.slice_s:
                self._rest = data[position:]
                break
        self._flush()
        self.scheduler.end(begun, self._share)

    def _read(self, data: bytes) -> None:
        reader = cast(RequestReader, self._reader)
        self.heads.learnable_bytes = -1
        if not reader.in_message:
            self.activity.quiet_s = 0.0
        reader.feed(data)

    def _learn(self, data: bytes, position: int, session: Session | None) -> None:
        """Let the fast path remember the head of the request that begins at `position`.

        `session` is the session before the request. If the request has changed the session, the head is not stored. A
        gateway stores the head anyway, because a gateway's sessions hold no token.
        """
        size = self.heads.learnable_bytes
        if size < 0 or self.is_ending:
            return
        if self._forwarder is not None:
            session = self.session
        if session is None or session is not self.session:
            return
        end = data.find(END_OF_HEAD, position) + 4
        if self._forwarder is not None and self.heads.is_private:
            return
        self.heads.learn(data[position : end + size], session.heads)
        if self._forwarder is not None and data[position:end] in session.heads.sizes:
            self._forwarder.learned(data[position:end])

    def _schedule(self) -> None:
        """Stop reading until this input gets a time slice, or until the client may send more requests."""
        self.state = OPEN
        self._set_reading(False)
        if not self._is_scheduled and self._may_ask:
            self._is_scheduled = True
            self.scheduler.wait(self, self._share.rank(len(self._rest)))
        self._report_memory()

    @property
    def _may_ask(self) -> bool:
        """Return whether the client may send more requests now."""
        return not self.is_paused and (not self.answers or self.answers.accepts_more)

    def _flush(self) -> None:
        self.answers.flush()
        self._settle()

    def _settle(self) -> None:
        """Choose the next state after a request, an answer or a change of flow control."""
        answers = self.answers
        is_held_up = self._rest or self.is_ending or self.is_paused or self._is_in_budget
        if self._is_reading and not (is_held_up or answers or self._in_message):
            self.state = OPEN if self.session is None else READY  # common case: no input and no answer waits
            return
        if self.state is DETACHED:
            return
        if not self.is_ending:
            if self._rest:
                self._schedule()
                return
            self._set_reading(self._may_ask)
            is_ready = self.session is not None and not (self._in_message or answers or self.is_paused)
            self.state = READY if is_ready else OPEN
        elif not answers and not self.transport.is_closing():
            if self.state is ENDING:
                self.transport.close()
            elif self._graceful_close is None:
                self._graceful_close = GracefulClose(self.transport, self.scheduler)
        self._report_memory()

    def _report_memory(self) -> None:
        """Report to the memory budget how much memory this connection holds."""
        size = len(self._rest) + self.answers.weight
        if self._reader is not None:
            size += self._reader.held_bytes
        if self.is_paused:
            size += self.transport.get_write_buffer_size()
        is_trusted = self.session is not None and self.session.is_trusted
        self._is_in_budget = self._policy.shared.budget.report_memory(self, size, is_trusted)

    def _set_reading(self, is_reading: bool) -> None:
        if is_reading != self._is_reading and not self.transport.is_closing():
            self._is_reading = is_reading
            if is_reading:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()
