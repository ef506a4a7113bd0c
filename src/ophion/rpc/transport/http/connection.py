"""One HTTP/1.1 client, from its first byte to its last.

    bytes -> PlainHeads ------------------------> application -> Answers -> bytes      heads seen before
          -> Turns -> RequestReader (hosts, ...) -^                                    everything else

A request whose head has been seen before is answered at once, with one dictionary lookup in place of a parse. Anything
else is parsed in pieces, for a limited time in each turn of the loop; what is left over waits, and nothing more is read
meanwhile. A client that does not read its answers is not read from either.
"""

from __future__ import annotations

import asyncio
import socket
from time import perf_counter
from typing import Final, cast

from ophion.rpc.transport.connection_slots import BUSY, NEVER_ASKED, NOT_LET_IN
from ophion.rpc.transport.graceful_close import GracefulClose
from ophion.rpc.transport.http.compression import WORTH_BYTES
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
from ophion.rpc.transport.http.reader import RequestReader
from ophion.rpc.transport.http.response_queue import WEIGHT_OF_A_BYTE, Answers
from ophion.rpc.transport.replies import Pending
from ophion.rpc.transport.slow_reader import SlowReaderCheck
from ophion.runtime.fair_scheduler import Share
from ophion.runtime.memory_budget import WORTH_NOTING

_NO_PLACE_BODY: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"Too many connections"}}'
_NO_PLACE: Final = response_head(Response(503, (_NO_PLACE_BODY,), JSON), b"", False, False) + _NO_PLACE_BODY
_NO_ROOM_BODY: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"Too many bytes are held"}}'
_NO_ROOM: Final = Response(503, (_NO_ROOM_BODY,), JSON, b"Retry-After: 1\r\n")
_HALF_CLOSED_S: Final = 2.0
"""How long a client that sends nothing more is taken for one that still wants its answers."""
_UNTAKEN_S: Final = 1.0
"""A client that does not take its answers gives way before one that has just asked for something."""
_STALLED_S: Final = 5.0
"""A request that has not moved for so long counts as no request when somebody else needs the place."""
_LIGHT_BYTES: Final = WORTH_NOTING // WEIGHT_OF_A_BYTE
"""A single request of less than this is not worth noting while it is at work."""
_TCP_INFO: Final = getattr(socket, "TCP_INFO", 0)
_TCP_CLOSE: Final = 7
_UNSENT_BYTES: Final = 8 * 1024
"""From here on what the socket does not take at once is noted; below it is hardly worth it."""


class HttpConnection(asyncio.Protocol):
    """One client. Tests drive it in process with a transport of their own."""

    def __init__(self, policy: HttpPolicy) -> None:
        self._policy = policy
        self._turns = policy.commons.turns
        self._session: Session | None = policy.everybody
        """Whose requests these are; None until a request has said so, where tokens are asked for."""
        self._plain_sizes = policy.heads.sizes
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._answers: Answers = cast(Answers, None)
        self._reader: RequestReader | None = None
        self._rest = b""
        """What has arrived and waits for its turn."""
        self._is_waiting = False
        self._share = Share()
        self._last_head = b""
        self._last_end = self._last_size = -1
        self._last_takes_gzip = False
        self._is_plain = policy.everybody is not None
        self.is_ending = False
        self._must_linger = False
        self._lingering: GracefulClose | None = None
        self._is_paused = False
        self._is_reading = True
        self._is_noted = False
        self._was_active = False
        self._is_known = False
        self._quiet_s = 0.0
        self._taking = SlowReaderCheck()
        self._learnable_size = -1
        self._learnable_with_gzip = False

    # --- called by the loop ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(_UNSENT_BYTES)
        turns = self._turns if is_encrypted(transport) else None
        self._answers = Answers(self._transport, self._policy.commons.lane, self._settle, self._weigh, turns)
        if not self._policy.opened(self):
            self.is_ending, self._is_plain = True, False
            self._transport.write(_NO_PLACE)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._policy.closed(self)
        self._policy.commons.budget.settle(self)
        self.is_ending, self._is_plain = True, False
        self._rest = b""
        self._answers.abandon()
        if self._reader is not None:
            self._reader.close()

    def data_received(self, data: bytes) -> None:
        self._was_active = True
        begun = perf_counter()
        if self._is_plain and (begun < self._turns.ends_at or self._turns.goes_on()):
            # most clients send the same head again and again: comparing it costs less than finding its end
            is_same = len(data) == self._last_size and data.startswith(self._last_head)
            end = self._last_end if is_same else self._known(data)
            if end:
                reply = self._session.handle(data[end:], self)  # type: ignore[union-attr]
                if type(reply) is bytes and 0 < len(reply) < KEPT_HEADS:
                    self._transport.write(JSON_HEADS[len(reply)] + reply)
                else:
                    self._take(data, end, reply, begun)
                return
        if self.is_ending:
            if self._lingering is not None:
                self._lingering.receive(len(data))
        elif self._rest or self._turns.is_over:
            self._rest += data
            self._put_aside()
        else:
            self._rest = data
            self.work()

    def eof_received(self) -> bool:
        """A client that has said all it wants to say still gets the answers it waits for, when they come soon.

        One that has gone away looks the same, and its work must not go on for nobody.
        """
        if self._rest:
            self.work()  # only where a transport tells of the end before it was asked to read on
        self.is_ending, self._is_plain = True, False
        if self._answers:
            asyncio.get_running_loop().call_later(_HALF_CLOSED_S, self._give_up)
        return bool(self._answers)

    def _give_up(self) -> None:
        if self._answers and not self._answers.is_streaming:  # writing shows soon enough whether somebody is there
            self._transport.abort()

    def pause_writing(self) -> None:
        self._is_paused, self._is_plain = True, False
        self._quiet_s = 0.0
        self._taking.begin(self._transport.get_write_buffer_size())
        self._set_reading(False)
        self._answers.pause()
        self._weigh()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._answers.resume()
        self._settle()

    # --- called by the service -------------------------------------------------------------------

    def tick(self, seconds: float) -> None:
        """Some time has passed: cut off whoever is too slow or has gone quiet."""
        if not self._is_reading and has_gone(self._transport):
            self._transport.abort()
            return
        if (self._answers or self._rest) and not self._is_paused:
            return  # the client waits for us
        busy = self._in_message or self._is_paused or self.is_ending
        if self._was_active and not busy:
            self._was_active, self._is_known, self._quiet_s = False, True, 0.0
            return
        self._quiet_s += seconds
        limits = self._policy.limits
        if self._is_paused:
            allowed_s = limits.write_timeout_s
            if self._taking.goes_on(self._transport.get_write_buffer_size()):
                self._quiet_s = 0.0
        elif busy:
            allowed_s = limits.read_timeout_s
        else:
            allowed_s = limits.idle_timeout_s
        if self._quiet_s > allowed_s:
            self._transport.abort()

    def idleness(self) -> float:
        """Seconds without a request, for whoever needs the place of this connection (`ConnectionSlots`)."""
        if self._is_paused:
            return _UNTAKEN_S + self._quiet_s
        if self._answers:
            return BUSY
        if self._session is not None:
            if self._is_waiting and self._session.is_heard:
                return BUSY
            if not self._session.is_trusted:
                return NOT_LET_IN + self._quiet_s
        if self._in_message:
            return NEVER_ASKED if self._quiet_s >= _STALLED_S else 0.0
        if self._was_active:
            return 0.0
        return self._quiet_s if self._is_known else NEVER_ASKED + self._quiet_s

    def give_way(self) -> None:
        """Somebody else takes the place of this connection, which has nothing to do."""
        self.is_ending, self._is_plain = True, False
        if self._transport.get_write_buffer_size():
            self._transport.abort()  # nobody would look after one that waits for a client which does not read
        else:
            self._transport.close()

    def cut_off(self) -> None:
        """All clients together hold too much: this one lets go of what it has (`Budget`)."""
        self._rest = b""
        if self.is_ending or self._answers or self._is_paused:
            self._transport.abort()
            self._answers.abandon()
        else:
            self.end_with(_NO_ROOM)
            self._flush()
        if self._reader is not None:
            self._reader.close()

    def close(self) -> None:
        """The service stops: no more requests are taken; what has been written still leaves."""
        self.is_ending, self._is_plain = True, False
        self._transport.close()

    @property
    def client(self) -> str:
        """Who asks: the name of a token, or the address of a machine."""
        name = None if self._session is None else self._session.client
        return name or address_of(self._transport)

    # --- called by the reader --------------------------------------------------------------------

    def on_request(self) -> None:
        self._quiet_s = 0.0
        reader = cast(RequestReader, self._reader)
        self._answer(reader.refusal or self._result(reader))

    def on_expectation(self) -> None:
        self._answers.put(CONTINUE)

    def on_upgrade(self, rest: bytes) -> bool:
        return False

    def end_with(self, response: Response) -> None:
        """Answer before the request is complete and read nothing more, but throw away what the client still sends."""
        if self.is_ending:
            return
        self._must_linger = True
        self._rest = b""
        if self._reader is not None:
            self._reader.keep_alive = False
        self._answer(response)

    def _answer(self, result: Result) -> None:
        reader = self._reader
        if reader is None:
            self.is_ending, self._is_plain = True, False
            self._answers.add(result, False)
            return
        if not reader.keep_alive:
            self.is_ending, self._is_plain = True, False
        size = reader.worked_bytes
        self._answers.add(
            result, reader.keep_alive, reader.is_old, reader.extra, size, reader.takes_gzip, reader.is_bare
        )

    def _result(self, reader: RequestReader) -> Result:
        policy = self._policy
        request = reader.request()
        if request.method == b"OPTIONS" and reader.extra and b"access-control-request-method" in request.headers:
            return preflight(request.headers.get(b"access-control-request-headers", b""))
        if not reader.is_call:
            request.address = address_of(self._transport)
            return policy.application.respond(request)
        if policy.guard is not None:
            # that of this request and no other: a proxy sends those of many clients over one connection
            self._work_with(cast(Session, reader.session))
            if len(request.body) < reader.body_bytes:
                return policy.guard.refusal  # it was not worth keeping
        session = self._session
        if session is None:
            return policy.application.respond(request)
        if reader.is_usual():
            self._learnable_size, self._learnable_with_gzip = len(request.body), reader.takes_gzip
        return session.handle(request.body, self)

    def _work_with(self, session: Session) -> None:
        if session is not self._session:
            self._session, self._plain_sizes = session, session.heads.sizes
            self._last_size = -1  # the last head came with another token

    # --- reading and writing ---------------------------------------------------------------------

    @property
    def _in_message(self) -> bool:
        return self._reader is not None and self._reader.in_message

    def _known(self, data: bytes) -> int:
        """Where the body of a request begins whose head has been seen before; 0 for any other."""
        return self._last_end if self._starts_known(data, 0) and self._last_size == len(data) else 0

    def _starts_known(self, data: bytes, position: int) -> bool:
        """Whether all of a request with such a head is here, others behind it or not."""
        if not (self._last_size > 0 and data.startswith(self._last_head, position)):
            end = data.find(b"\r\n\r\n", position) + 4
            head = data[position:end]
            size = self._plain_sizes.get(head)
            if size is None:
                return False
            self._last_head, self._last_end, self._last_size = head, len(head), len(head) + size
            self._last_takes_gzip = head in self._session.heads.with_gzip  # type: ignore[union-attr]  # one is there when plain
        return position + self._last_size <= len(data)

    def _take(self, data: bytes, end: int, reply: Result, begun: float = 0.0) -> None:
        """The reply to such a request, when nobody waits before it; `begun` where nobody else measures how long it
        takes."""
        if type(reply) is bytes and reply and (not self._last_takes_gzip or len(reply) < WORTH_BYTES):
            self._transport.write(json_head(len(reply)) + reply)
            return
        self._answers.add(reply, size=len(data) - end, takes_gzip=self._last_takes_gzip)
        if isinstance(reply, Pending) and len(data) - end < _LIGHT_BYTES and not reply.weight:
            self._is_plain = False  # nothing else changes while it is at work
        else:
            self._flush()
            if begun and type(reply) is Response:  # made on the spot, and not always with little work
                self._turns.end(begun, self._share)

    def _take_next(self, data: bytes, position: int) -> int:
        """Such a request among others, whose answer waits for theirs; how many bytes it is, 0 where it is another."""
        if self._session is None or self._in_message or self._is_paused or not self._starts_known(data, position):
            return 0
        size, end = self._last_size, position + self._last_size
        reply = self._session.handle(data[position + self._last_end : end], self)
        self._answers.add(reply, size=size - self._last_end, takes_gzip=self._last_takes_gzip)
        return size

    def work(self) -> None:
        """Go on with what has arrived, for a while (`Turns`)."""
        self._is_waiting = False
        data, position = self._rest, 0
        if self.is_ending or not data:
            return
        begun, is_crowded = perf_counter(), self._turns.is_crowded
        if self._session is not None and not (self._in_message or self._answers or self._is_paused):
            end = self._known(data)
            if end:
                self._rest = b""
                self._take(data, end, self._session.handle(data[end:], self))
                self._settle()
                self._turns.end(begun, self._share)
                return
        while True:
            size = self._take_next(data, position)
            if not size:
                if self._reader is None:
                    self._reader = RequestReader(self._policy, self)
                size = self._reader.piece(data, position, is_crowded)
                is_begun, session = self._in_message, self._session
                if position == 0 and len(data) <= size:
                    self._rest = b""
                    self._read(data)
                    if not is_begun:
                        self._learn(data, 0, session)
                    break
                self._read(data[position : position + size])
                if not is_begun:
                    self._learn(data, position, session)
            position += size
            if self._has_ended() or position >= len(data):
                self._rest = b""
                break
            if is_crowded or not self._has_room or perf_counter() - begun > self._turns.slice_s:
                self._rest = data[position:]
                break
        self._flush()
        self._turns.end(begun, self._share)

    def _has_ended(self) -> bool:
        return self.is_ending

    def _read(self, data: bytes) -> None:
        reader = cast(RequestReader, self._reader)
        self._learnable_size = -1
        if not reader.in_message:
            self._quiet_s = 0.0
        reader.feed(data)

    def _learn(self, data: bytes, position: int, session: Session | None) -> None:
        """The request that begins here has been read: where it has left nothing to decide, its head is known now.

        Not with the first request of a token: `session` is whose requests were read before it.
        """
        size = self._learnable_size
        if size >= 0 and not self.is_ending and session is not None and session is self._session:
            end = data.find(b"\r\n\r\n", position) + 4 + size
            session.heads.learn(data[position:end], size, self._learnable_with_gzip)

    def _put_aside(self) -> None:
        """What has arrived waits, for its turn or for room; nothing more is read meanwhile."""
        self._is_plain = False
        self._set_reading(False)
        if not self._is_waiting and self._has_room:
            self._is_waiting = True
            self._turns.wait(self, self._share.rank(len(self._rest)))
        self._weigh()

    @property
    def _has_room(self) -> bool:
        """Whether the client may ask for more at this moment."""
        return not self._is_paused and (not self._answers or self._answers.has_room)

    def _flush(self) -> None:
        self._answers.flush()
        self._settle()

    def _settle(self) -> None:
        """Decide what may happen next on this connection."""
        answers = self._answers
        is_held_up = self._rest or self.is_ending or self._is_paused or self._is_noted
        if self._is_reading and not (is_held_up or answers or self._in_message):
            self._is_plain = self._session is not None  # as nearly always
            return
        if not self.is_ending:
            if self._rest:
                self._put_aside()
                return
            self._set_reading(self._has_room)
            self._is_plain = self._session is not None and not (self._in_message or answers or self._is_paused)
        elif not answers and not self._transport.is_closing():
            if not self._must_linger:
                self._transport.close()
            elif self._lingering is None:
                self._lingering = GracefulClose(self._transport, self._turns)
        self._weigh()

    def _weigh(self) -> None:
        """Note what this connection makes the node hold."""
        size = len(self._rest) + self._answers.weight
        if self._reader is not None:
            size += self._reader.held_bytes
        if self._is_paused:
            size += self._transport.get_write_buffer_size()
        is_trusted = self._session is not None and self._session.is_trusted
        self._is_noted = self._policy.commons.budget.weigh(self, size, is_trusted)

    def _set_reading(self, wanted: bool) -> None:
        if wanted != self._is_reading and not self._transport.is_closing():
            self._is_reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()


def is_encrypted(transport: asyncio.BaseTransport) -> bool:
    """Whether what is written there is encrypted on the loop."""
    return transport.get_extra_info("sslcontext") is not None


def has_gone(transport: asyncio.BaseTransport) -> bool:
    """Whether the other end has broken the connection off: nobody is told while nothing is read or written."""
    connection = transport.get_extra_info("socket")
    if connection is None or not _TCP_INFO:
        return False
    try:
        return bool(connection.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 1)[0] == _TCP_CLOSE)
    except OSError:
        return False


def address_of(transport: asyncio.BaseTransport) -> str:
    """The address of the machine at the other end; empty where there is none."""
    name = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) else ""
