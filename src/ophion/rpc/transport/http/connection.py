"""One HTTP/1.1 client, from its first byte to its last.

    bytes -> PlainHeads ------------------------> application -> Answers -> bytes      heads seen before
          -> RequestReader (hosts, origins, ...) -^                                    everything else

A request whose head has been seen before is answered at once, with one dictionary lookup in place of a parse. A client
that does not read its answers is not read from either.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from ophion.rpc.transport.http.answers import Answers
from ophion.rpc.transport.http.policy import HttpPolicy, Result, Session
from ophion.rpc.transport.http.reader import RequestReader
from ophion.rpc.transport.http.wire import CONTINUE, JSON, Response, json_head, preflight, response_head
from ophion.rpc.transport.places import BUSY, NEVER_ASKED

_NO_PLACE_BODY: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"Too many connections"}}'
_NO_PLACE: Final = response_head(Response(503, (_NO_PLACE_BODY,), JSON), b"", False, False) + _NO_PLACE_BODY
_HALF_CLOSED_S: Final = 2.0
"""How long a client that sends nothing more is taken for one that still wants its answers."""
_STALLED_S: Final = 5.0
"""A request that has not moved for so long counts as no request when somebody else needs the place."""


class HttpConnection(asyncio.Protocol):
    """One client. Tests drive it in process with a transport of their own."""

    def __init__(self, policy: HttpPolicy) -> None:
        self._policy = policy
        self._session: Session | None = policy.everybody
        """Whose requests these are; None until a request has said so, where tokens are asked for."""
        self._plain_sizes = policy.heads.sizes
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._answers: Answers = cast(Answers, None)
        self._reader = RequestReader(policy, self)
        self._last_head = b""
        self._last_end = self._last_size = -1
        self._is_plain = policy.everybody is not None
        self.is_ending = False
        self._must_linger = False
        self._has_sent_eof = False
        self._is_paused = False
        self._is_reading = True
        self._was_active = False
        self._is_known = False
        self._quiet_s = 0.0
        self._learnable_size = -1

    # --- called by the loop ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._answers = Answers(self._transport, self._flush)
        if not self._policy.opened(self):
            self.is_ending, self._is_plain = True, False
            self._transport.write(_NO_PLACE)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._policy.closed(self)
        self._policy.backlog.settle(self)
        self.is_ending, self._is_plain = True, False
        self._answers.abandon()

    def data_received(self, data: bytes) -> None:
        self._was_active = True
        if self._is_plain:
            # most clients send the same head again and again: comparing it costs less than finding its end
            if len(data) == self._last_size and data.startswith(self._last_head):
                end = self._last_end
                is_known = True
            else:
                end = data.find(b"\r\n\r\n") + 4
                is_known = self._plain_sizes.get(data[:end]) == len(data) - end
                if is_known:
                    self._last_head, self._last_end, self._last_size = data[:end], end, len(data)
            if is_known:
                reply = self._session.handle(data[end:], self)  # type: ignore[union-attr]  # there is one when plain
                if type(reply) is bytes and reply:
                    self._transport.write(json_head(len(reply)) + reply)
                else:
                    self._answers.add(reply, size=len(data) - end)
                    self._flush()
                return
        if not self.is_ending:
            self._read(data)

    def eof_received(self) -> bool:
        """A client that has said all it wants to say still gets the answers it waits for, when they come soon.

        One that has gone away looks the same, and its work must not go on for nobody.
        """
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
        self._set_reading(False)
        self._policy.backlog.note(self, self._transport.get_write_buffer_size())
        self._answers.pause()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._policy.backlog.settle(self)
        self._answers.resume()
        self._settle()

    # --- called by the service -------------------------------------------------------------------

    def tick(self, seconds: float) -> None:
        """Some time has passed: cut off whoever is too slow or has gone quiet."""
        if self._answers and not self._is_paused:
            return  # the client waits for us
        busy = self._reader.in_message or self._is_paused or self.is_ending
        if self._was_active and not busy:
            self._was_active, self._is_known, self._quiet_s = False, True, 0.0
            return
        self._quiet_s += seconds
        limits = self._policy.limits
        if self._is_paused:
            allowed_s = limits.write_timeout_s
        elif busy:
            allowed_s = limits.read_timeout_s
        else:
            allowed_s = limits.idle_timeout_s
        if self._quiet_s > allowed_s:
            self._transport.abort()

    def idleness(self) -> float:
        """Seconds without a request, for whoever needs the place of this connection (`Places`)."""
        if self._is_paused:
            return self._quiet_s
        if self._answers:
            return BUSY
        if self._reader.in_message:
            return NEVER_ASKED if self._quiet_s >= _STALLED_S else 0.0
        if self._was_active:
            return 0.0
        return self._quiet_s if self._is_known else NEVER_ASKED + self._quiet_s

    def give_way(self) -> None:
        """Somebody else takes the place of this connection, which has nothing to do."""
        self.is_ending, self._is_plain = True, False
        if self._is_paused:
            self._transport.abort()
        else:
            self._transport.close()

    def cut_off(self) -> None:
        """The client does not take its answers, and others need the memory."""
        self._transport.abort()

    def close(self) -> None:
        """The service stops: no more requests are taken; what has been written still leaves."""
        self.is_ending, self._is_plain = True, False
        self._transport.close()

    # --- called by the reader --------------------------------------------------------------------

    def on_request(self) -> None:
        self._quiet_s = 0.0
        self._answer(self._reader.refusal or self._result())

    def on_expectation(self) -> None:
        self._answers.put(CONTINUE)

    def end_with(self, response: Response) -> None:
        """Answer before the request is complete and read nothing more.

        The connection is closed for writing only, and what the client still sends is thrown away: closing it altogether
        would make the other side drop the answer together with the connection.
        """
        if self.is_ending:
            return
        self._reader.keep_alive = False
        self._must_linger = True
        self._answer(response)

    def _answer(self, result: Result) -> None:
        reader = self._reader
        if not reader.keep_alive:
            self.is_ending, self._is_plain = True, False
        self._answers.add(result, reader.keep_alive, reader.is_old, reader.extra, reader.body_bytes)

    def _result(self) -> Result:
        reader, policy = self._reader, self._policy
        request = reader.request()
        if request.method == b"OPTIONS" and reader.extra and b"access-control-request-method" in request.headers:
            return preflight()
        if request.method != b"POST" or request.path != b"/":
            return policy.application.respond(request)
        if policy.guard is not None:
            self._work_with(policy.guard.session(request.headers.get(b"authorization")))
        session = self._session
        if session is None:
            return policy.application.respond(request)
        if reader.is_usual():
            self._learnable_size = len(request.body)
        return session.handle(request.body, self)

    def _work_with(self, session: Session) -> None:
        if session is not self._session:
            self._session, self._plain_sizes = session, session.heads.sizes
            self._last_size = -1  # the last head came with another token

    # --- reading and writing ---------------------------------------------------------------------

    def _read(self, data: bytes) -> None:
        was_plain, self._learnable_size = self._is_plain, -1
        if not self._reader.in_message:
            self._quiet_s = 0.0
        self._reader.feed(data)
        if was_plain and self._learnable_size >= 0 and not self._reader.in_message and self._session is not None:
            self._session.heads.learn(data, self._learnable_size)
        self._flush()

    def _flush(self) -> None:
        if self._answers.flush() and self._is_paused:
            self._policy.backlog.note(self, self._transport.get_write_buffer_size())
        self._settle()

    def _settle(self) -> None:
        """Decide what may happen next on this connection."""
        answers = self._answers
        if not self.is_ending:
            self._set_reading(not self._is_paused and (not answers or answers.has_room))
            self._is_plain = self._session is not None and not (self._reader.in_message or answers or self._is_paused)
        elif not answers and not self._transport.is_closing():
            if not self._must_linger:
                self._transport.close()
            elif not self._has_sent_eof:
                self._has_sent_eof = True
                if self._transport.can_write_eof():
                    self._transport.write_eof()
                else:
                    self._transport.close()  # TLS knows no half-closed connections

    def _set_reading(self, wanted: bool) -> None:
        if wanted != self._is_reading and not self._transport.is_closing():
            self._is_reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
