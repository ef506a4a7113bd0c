"""Bytes of one HTTP client to requests, by httptools: partial reads, chunked bodies, pipelining, expectations.

What can be refused by a head alone is refused there: hosts, origins, heads and bodies that are too large, heads that
two servers could read differently. A body is kept only for somebody who may have it looked at, and until it is used.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

import httptools

from ophion.rpc.transport.http.compression import takes_gzip
from ophion.rpc.transport.http.messages import Request, Response, media_type
from ophion.rpc.transport.http.policy import HttpPolicy, Result, Session

_HOST_REFUSED: Final = Response(403, (b'{"message":"Host not authorized."}',), b"application/json; charset=utf-8")
_ORIGIN_REFUSED: Final = Response(403)
_MALFORMED: Final = Response(400)
_UNUSUAL: Final = (b"expect", b"transfer-encoding", b"upgrade")
_ONCE: Final = frozenset(
    (b"authorization", b"content-length", b"content-type", b"host", b"origin", b"transfer-encoding")
)
"""Headers that decide something: whoever sends two of a kind wants them to be read differently by different servers."""
_LISTS: Final = frozenset((b"accept-encoding", b"connection", b"if-none-match", b"upgrade"))
"""Headers that are taken apart at their commas."""
_LONGEST_LIST: Final = 4 * 1024
_MAX_HEADERS: Final = 256
"""So few that the memory for them is a small multiple of their bytes."""
_LONGEST_NUMBER: Final = 18
_KEPT_OF_STRANGERS: Final = 64 * 1024
"""How much of a body is kept without a good token: enough to find its id and refuse it, or to log in."""
_ABSOLUTE: Final = re.compile(rb"https?://([^/?]*)(.*)", re.IGNORECASE | re.DOTALL)
"""A target as for a proxy, which every server has to understand (RFC 9112, 3.2.2)."""
_END_OF_HEAD: Final = b"\r\n\r\n"
_PIECE: Final = 4 * 1024
"""How much is parsed at a time, where a few bytes can mean much work."""
_SMALL_PIECE: Final = 512
_BODY_PIECE: Final = 64 * 1024


class Reading(Protocol):
    """The connection that is read from."""

    is_ending: bool
    """No more requests are read."""

    def on_request(self) -> None:
        """A request is complete."""

    def on_expectation(self) -> None:
        """The client waits for a word before it sends the body."""

    def on_upgrade(self, rest: bytes) -> bool:
        """The client wants another protocol from `rest` on; whether it gets it, and nothing more is read here."""

    def end_with(self, response: Response) -> None:
        """Answer before the request is complete and read nothing more."""


class RequestReader:
    """The request that arrives now. Its `on_...` methods are called by httptools."""

    def __init__(self, policy: HttpPolicy, connection: Reading) -> None:
        self._policy = policy
        self._connection: Reading | None = connection
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self.on_message_begin()
        self.in_message = self._in_head = False

    def on_message_begin(self) -> None:
        self.in_message = self._in_head = True
        self._head_bytes = self._fed_bytes = self._header_count = 0
        self._target = b""
        self.headers: dict[bytes, bytes] = {}
        self._body: bytes | bytearray = b""
        self.body_bytes = 0
        self._announced = -1
        self._kept = self._policy.limits.max_body_bytes
        self.is_call = False
        """Whether it is a `POST /`, or what the application has in its place, with or without a query: what a
        dispatcher answers, and a guard is asked about."""
        self.session: Session | None = None
        """Whose request it is, where tokens are asked for."""
        self.extra = b""
        """Header lines that the answer needs because of the request."""
        self.refusal: Response | None = None
        self.keep_alive, self.is_old = True, False
        self.takes_gzip = False
        self.is_bare = False
        """Whether the answer must have no body, whatever it is: that of a `HEAD`."""

    @property
    def worked_bytes(self) -> int:
        """Bytes of the request that are made something of: body and target; headers are hardly more than kept."""
        return self.body_bytes + len(self._target) + self._head_bytes // 8

    @property
    def held_bytes(self) -> int:
        """What is kept of a request that has not been used."""
        return self._fed_bytes if self._in_head else len(self._body) + len(self._target) + self._head_bytes

    def piece(self, data: bytes, position: int, is_crowded: bool) -> int:
        """How many bytes may be fed at a time: what remains of a body needs no parsing, anything else does.

        No piece has the ends of two heads in it: each request is answered where its last byte is fed, and a few bytes
        of a head can ask for milliseconds of work. A piece that begins in a body ends with it: what comes then can be
        compared with what is known.
        """
        left = self._announced - self.body_bytes
        if left > 0 and not self._in_head:
            return min(left, _BODY_PIECE)
        size = _SMALL_PIECE if is_crowded else _PIECE
        first = data.find(_END_OF_HEAD, position, position + size)
        second = -1 if first < 0 else data.find(_END_OF_HEAD, first + len(_END_OF_HEAD), position + size)
        return size if second < 0 else second - position

    def feed(self, data: bytes) -> None:
        """Take some bytes; the connection is told of what they complete."""
        while data and self._parser is not None and self._connection is not None:
            try:
                self._parser.feed_data(data)
                rest = b""
            except httptools.HttpParserUpgrade as upgrade:
                if self._parser.get_method() == b"CONNECT":
                    self._connection.end_with(Response(405))
                    return
                if not self._connection.is_ending and self._connection.on_upgrade(data[upgrade.args[0] :]):
                    return
                rest = self._without_upgrade() + data[upgrade.args[0] :]
            except httptools.HttpParserCallbackError as error:
                raise error.__context__ or error from None
            except httptools.HttpParserError:
                self._connection.end_with(_MALFORMED)
                return
            if self._in_head:
                self._fed_bytes += len(data)
                if self._fed_bytes > self._policy.limits.max_head_bytes and self._connection is not None:
                    self._refuse_head(self._connection)
            data = rest

    def close(self) -> None:
        """The connection is gone, or reads nothing more: neither it nor the parser is held any longer, nor any body."""
        self._parser = self._connection = None
        self._body = b""

    def request(self) -> Request:
        """What has arrived; its body is handed over and not kept."""
        path, _, query = self._target.partition(b"?")
        body, self._body = bytes(self._body), b""
        assert self._parser is not None
        return Request(self._parser.get_method(), path, query, self.headers, body)

    def is_plain(self, target: bytes | None = None) -> bool:
        """Whether the same head again can be told by its bytes alone, and leaves nothing to decide; that of a call,
        where no other target is given."""
        if self._policy.guard is None and b"authorization" in self.headers:
            return False  # nobody needs it here, so it is not kept either
        wanted = self._policy.call_path if target is None else target
        is_plain = self.keep_alive and not self.is_old and not self.extra and self._target == wanted
        return is_plain and b"content-length" in self.headers and self.headers.keys().isdisjoint(_UNUSUAL)

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        connection = self._connection
        if connection is None or connection.is_ending:
            return
        self._head_bytes += len(name) + len(value)
        self._header_count += 1
        if self._head_bytes > self._policy.limits.max_head_bytes or self._header_count > _MAX_HEADERS:
            self._refuse_head(connection)
        elif self._in_head:  # what comes after a chunked body is no head
            name = name.lower()
            if name in _LISTS and len(value) > _LONGEST_LIST:
                self._refuse_head(connection)
                return
            if name in self.headers and name in _ONCE:
                connection.end_with(_MALFORMED)
            else:
                self.headers[name] = value

    def on_headers_complete(self) -> None:
        self._in_head = False
        connection, parser = self._connection, self._parser
        if connection is None or parser is None or connection.is_ending:
            return
        self.keep_alive = parser.should_keep_alive()
        self.is_old = parser.get_http_version() == "1.0"
        headers, policy = self.headers, self._policy
        # an answer that is made smaller comes in chunks, which old clients do not know
        self.takes_gzip = not self.is_old and takes_gzip(headers.get(b"accept-encoding"))
        self.is_bare = parser.get_method() == b"HEAD"
        origin = headers.get(b"origin")
        if not (policy.hosts.allows(headers.get(b"host")) and self._is_meant_here()):
            self.refusal = getattr(policy.application, "host_refused", _HOST_REFUSED)
        elif origin is not None and not policy.origins.allows(origin, headers.get(b"host")):
            self.refusal = _ORIGIN_REFUSED
        elif origin is not None:
            self.extra = b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\n" % origin
        length = headers.get(b"content-length", b"0").lstrip(b"0") or b"0"
        if len(length) > _LONGEST_NUMBER or int(length) > policy.limits.max_body_bytes:
            connection.end_with(Response(413))
            return
        self._announced = int(length)
        self.is_call = (
            parser.get_method() == b"POST"
            and self._target.partition(b"?")[0] == policy.call_path
            and (policy.call_kind is None or media_type(headers) == policy.call_kind)
        )
        if self.refusal is None and policy.guard is not None:
            if self.is_call:
                self.session = policy.guard.session(headers.get(b"authorization"))
            if self.session is None or not self.session.is_heard:
                self._kept = min(self._kept, _KEPT_OF_STRANGERS)
        if b"expect" in headers and not self.is_old:
            if headers[b"expect"].lower() != b"100-continue":
                connection.end_with(Response(417))
            elif self.refusal is None:
                connection.on_expectation()

    def on_body(self, chunk: bytes) -> None:
        connection = self._connection
        if connection is None or connection.is_ending:
            return
        self.body_bytes += len(chunk)
        if self.body_bytes > self._policy.limits.max_body_bytes:
            connection.end_with(Response(413))
        elif self.refusal is not None:
            pass
        elif self.body_bytes > self._kept:
            self._body = b""
        elif not self._body:
            self._body = chunk
        else:
            if type(self._body) is bytes:
                self._body = bytearray(self._body)
            self._body += chunk

    def on_message_complete(self) -> None:
        self.in_message = False
        connection, parser = self._connection, self._parser
        if connection is not None and parser is not None and not connection.is_ending and not parser.should_upgrade():
            connection.on_request()
            self._let_go()

    def _is_meant_here(self) -> bool:
        """Take the name of a server off a target that has one; whether it is a name of this one."""
        if self._target[:1] == b"/":  # as nearly always
            return True
        absolute = _ABSOLUTE.fullmatch(self._target)
        if absolute is None:
            return True
        host, path = absolute.groups()
        self._target = path if path[:1] == b"/" else b"/" + path
        return self._policy.hosts.allows(host)

    def _refuse_head(self, connection: Reading) -> None:
        connection.end_with(Response(431))
        self._let_go()

    def _let_go(self) -> None:
        """A connection that has nothing to ask at this moment holds nothing of what it has asked."""
        self.headers, self._target = {}, b""
        self._head_bytes = self._fed_bytes = 0

    def _without_upgrade(self) -> bytes:
        """The head again without its wish for another protocol, which this server may ignore; some clients always ask.

        The parser has taken everything after the head for that other protocol, so it has to be fed anew.
        """
        assert self._parser is not None
        # what else `Connection` says is meant: a client that closes waits for the end
        lines = b"".join(b"%b: %b\r\n" % header for header in self.headers.items() if header[0] != b"upgrade")
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        self._parser = httptools.HttpRequestParser(self)
        return b"%b %b HTTP/%b\r\n%b\r\n" % (method, self._target, version, lines)


class RequestForwarder(Protocol):
    """What a gateway does with requests in place of the application (ophion.gateway.connection)."""

    max_open: int
    """Requests that one client may have open at a time."""

    def result(self, reader: RequestReader) -> Result:
        """Answer a complete request."""

    def upgrade(self, reader: RequestReader, rest: bytes) -> bool:
        """Hand the connection over to another protocol if the request asks for it; False if not."""

    def learned(self, head: bytes) -> None:
        """The fast path knows this head from here on."""
