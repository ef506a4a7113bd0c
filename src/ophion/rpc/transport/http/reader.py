"""Parses the requests of one HTTP client with httptools: partial reads, chunked bodies, pipelining, expectations.

Most reasons to refuse a request are in its head: host, origin, size, or a form that two servers could read
differently. A body is stored only if the client may call a method, and only until it is used.
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
_NOT_PLAIN: Final = (b"expect", b"transfer-encoding", b"upgrade")
_ONCE: Final = frozenset(
    (b"authorization", b"content-length", b"content-type", b"host", b"origin", b"transfer-encoding")
)
"""Headers that must not repeat. A repetition is typical of request smuggling."""
_LISTS: Final = frozenset((b"accept-encoding", b"connection", b"if-none-match", b"upgrade"))
"""Headers that are split at commas."""
_MAX_LIST_BYTES: Final = 4 * 1024
_MAX_HEADERS: Final = 256
"""Maximum number of headers, because each header object takes more memory than a short header line."""
_MAX_LENGTH_DIGITS: Final = 18
_MAX_UNAUTHENTICATED_BYTES: Final = 64 * 1024
"""Maximum body size without a valid token: enough for a login, or to find the id of a refused request."""
_ABSOLUTE: Final = re.compile(rb"https?://([^/?]*)(.*)", re.IGNORECASE | re.DOTALL)
"""A target in absolute form, which every server must accept (RFC 9112, 3.2.2)."""
_END_OF_HEAD: Final = b"\r\n\r\n"
_PIECE_BYTES: Final = 4 * 1024
"""Number of bytes that are parsed at a time. The piece is small, because a few bytes can hold many requests."""
_SMALL_PIECE_BYTES: Final = 512
_BODY_PIECE_BYTES: Final = 64 * 1024


class ReaderConnection(Protocol):
    """The connection for which a reader parses requests, as the reader uses it."""

    is_ending: bool
    """Whether the connection reads no more requests."""

    def on_request(self) -> None:
        """Handle a complete HTTP request."""

    def on_expectation(self) -> None:
        """Send `100 Continue`. The client waits for this response before it sends the body."""

    def on_upgrade(self, rest: bytes) -> bool:
        """Switch to another protocol that starts with `rest`. Returns False if that protocol is not supported."""

    def end_with(self, response: Response) -> None:
        """Send a final answer before the request is complete, and read no more requests."""


class RequestReader:
    """Reads one request after the other. httptools calls its `on_...` methods."""

    def __init__(self, policy: HttpPolicy, connection: ReaderConnection) -> None:
        self._policy = policy
        self._connection: ReaderConnection | None = connection
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
        self._max_kept_bytes = self._policy.limits.max_body_bytes
        self.is_call = False
        """Whether the request is an API call (`Application.plain`), with or without a query."""
        self.session: Session | None = None
        """The session of the request if tokens are required."""
        self.extra = b""
        """Additional header lines for the answer (CORS)."""
        self.refusal: Response | None = None
        self.keep_alive, self.is_old = True, False
        self.takes_gzip = False
        self.is_bare = False
        """Whether the answer has no body, because the request is a `HEAD`."""

    @property
    def worked_bytes(self) -> int:
        """Return the bytes that count as processing time: body and request target in full, headers by one eighth."""
        return self.body_bytes + len(self._target) + self._head_bytes // 8

    @property
    def held_bytes(self) -> int:
        """Return the number of bytes held for an incomplete request."""
        return self._fed_bytes if self._in_head else len(self._body) + len(self._target) + self._head_bytes

    def piece(self, data: bytes, position: int, has_many_waiting: bool) -> int:
        """Return how many bytes to parse next. A piece of a body may be large, because bodies need no parsing.

        A piece completes at most one request, because answering a request may take milliseconds. A piece that begins in
        a body ends with the body, so that the next head can take the fast path.
        """
        left = self._announced - self.body_bytes
        if left > 0 and not self._in_head:
            return min(left, _BODY_PIECE_BYTES)
        size = _SMALL_PIECE_BYTES if has_many_waiting else _PIECE_BYTES
        first = data.find(_END_OF_HEAD, position, position + size)
        second = -1 if first < 0 else data.find(_END_OF_HEAD, first + len(_END_OF_HEAD), position + size)
        return size if second < 0 else second - position

    def feed(self, data: bytes) -> None:
        """Parse some bytes and call the connection for each completed request."""
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
        """Release the connection, the parser and the body."""
        self._parser = self._connection = None
        self._body = b""

    def request(self) -> Request:
        """Return the complete request. The reader no longer holds its body."""
        path, _, query = self._target.partition(b"?")
        body, self._body = bytes(self._body), b""
        assert self._parser is not None
        return Request(self._parser.get_method(), path, query, self.headers, body)

    def is_plain(self, target: bytes | None = None) -> bool:
        """Return whether the fast path may store the HTTP request head. `target` is the expected request target; the
        default is the path of API calls.
        """
        expected = self._policy.call_path if target is None else target
        is_plain = self.keep_alive and not self.is_old and not self.extra and self._target == expected
        return is_plain and b"content-length" in self.headers and self.headers.keys().isdisjoint(_NOT_PLAIN)

    @property
    def has_unused_token(self) -> bool:
        """Return whether the HTTP request head has a secret that this service does not use. Connections do not share
        such a head.
        """
        return self._policy.guard is None and b"authorization" in self.headers

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
        elif self._in_head:  # trailers of a chunked body come after the head and are ignored
            name = name.lower()
            if name in _LISTS and len(value) > _MAX_LIST_BYTES:
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
        # an HTTP/1.0 client gets no compressed answer, because a compressed answer is chunked
        self.takes_gzip = not self.is_old and takes_gzip(headers.get(b"accept-encoding"))
        self.is_bare = parser.get_method() == b"HEAD"
        origin = headers.get(b"origin")
        if not (policy.hosts.allows(headers.get(b"host")) and self._is_target_allowed()):
            self.refusal = getattr(policy.application, "host_refused", _HOST_REFUSED)
        elif origin is not None and not policy.origins.allows(origin, headers.get(b"host")):
            self.refusal = _ORIGIN_REFUSED
        elif origin is not None:
            self.extra = b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\n" % origin
        length = headers.get(b"content-length", b"0").lstrip(b"0") or b"0"
        if len(length) > _MAX_LENGTH_DIGITS or int(length) > policy.limits.max_body_bytes:
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
            if self.session is None or not self.session.may_call:
                self._max_kept_bytes = min(self._max_kept_bytes, _MAX_UNAUTHENTICATED_BYTES)
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
        elif self.body_bytes > self._max_kept_bytes:
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
            self._release_head()

    def _is_target_allowed(self) -> bool:
        """Strip the host from a target in absolute form; return whether that host is allowed."""
        if self._target[:1] == b"/":  # in the common case, the target is a path without a host
            return True
        absolute = _ABSOLUTE.fullmatch(self._target)
        if absolute is None:
            return True
        host, path = absolute.groups()
        self._target = path if path[:1] == b"/" else b"/" + path
        return self._policy.hosts.allows(host)

    def _refuse_head(self, connection: ReaderConnection) -> None:
        connection.end_with(Response(431))
        self._release_head()

    def _release_head(self) -> None:
        """Release the HTTP request head, so that an idle connection holds no data of past requests."""
        self.headers, self._target = {}, b""
        self._head_bytes = self._fed_bytes = 0

    def _without_upgrade(self) -> bytes:
        """Return the HTTP request head without its `Upgrade` header. Some clients always send this header, and a server
        may ignore it.

        The parser treats all bytes after such a head as another protocol. So a new parser reads the request again.
        """
        assert self._parser is not None
        # keep the `Connection` header, because it may ask to close the connection
        lines = b"".join(b"%b: %b\r\n" % header for header in self.headers.items() if header[0] != b"upgrade")
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        self._parser = httptools.HttpRequestParser(self)
        return b"%b %b HTTP/%b\r\n%b\r\n" % (method, self._target, version, lines)


class RequestForwarder(Protocol):
    """Answers requests in place of the application; used by a gateway (ophion.gateway.connection)."""

    max_open: int
    """Maximum number of requests that one client may have open."""

    def result(self, reader: RequestReader) -> Result:
        """Answer a complete HTTP request."""

    def upgrade(self, reader: RequestReader, rest: bytes) -> bool:
        """Hand the connection over to another protocol. Returns False if the request does not ask for another
        protocol.
        """

    def learned(self, head: bytes) -> None:
        """Called when the fast path has stored the head of this request."""
