"""Bytes of one HTTP client to requests, by httptools: partial reads, chunked bodies, pipelining, expectations.

What can be refused by a head alone is refused there: hosts, origins, heads and bodies that are too large.
"""

from __future__ import annotations

from typing import Final, Protocol

import httptools

from ophion.rpc.transport.http.policy import HttpPolicy
from ophion.rpc.transport.http.wire import Request, Response

_HOST_REFUSED: Final = Response(403, (b'{"message":"Host not authorized."}',), b"application/json; charset=utf-8")
_ORIGIN_REFUSED: Final = Response(403)
_UNUSUAL: Final = (b"expect", b"transfer-encoding", b"upgrade")


class Reading(Protocol):
    """The connection that is read from."""

    is_ending: bool
    """Nothing more is read."""

    def on_request(self) -> None:
        """A request is complete."""

    def on_expectation(self) -> None:
        """The client waits for a word before it sends the body."""

    def end_with(self, response: Response) -> None:
        """Answer before the request is complete and read nothing more."""


class RequestReader:
    """The request that arrives now. Its `on_...` methods are called by httptools."""

    def __init__(self, policy: HttpPolicy, connection: Reading) -> None:
        self._policy = policy
        self._connection = connection
        self._parser = httptools.HttpRequestParser(self)
        self.on_message_begin()
        self.in_message = self._in_head = False

    def on_message_begin(self) -> None:
        self.in_message = self._in_head = True
        self._head_bytes = self._fed_bytes = 0
        self._target = b""
        self.headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self.body_bytes = 0
        self.extra = b""
        """Header lines that the answer needs because of the request."""
        self.refusal: Response | None = None
        self.keep_alive, self.is_old = True, False

    def feed(self, data: bytes) -> None:
        """Take some bytes; the connection is told of what they complete."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._parser.get_method() != b"CONNECT":
                self.feed(self._without_upgrade() + data[upgrade.args[0] :])
                return
            self._connection.end_with(Response(405))
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except httptools.HttpParserError:
            self._connection.end_with(Response(400))
        if self._in_head:
            self._fed_bytes += len(data)
            if self._fed_bytes > self._policy.limits.max_head_bytes:
                self._connection.end_with(Response(431))

    def request(self) -> Request:
        """What has arrived."""
        path, _, query = self._target.partition(b"?")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        return Request(self._parser.get_method(), path, query, self.headers, body)

    def is_usual(self) -> bool:
        """Whether the same head again can be told by its bytes alone, and leaves nothing to decide."""
        if self._policy.guard is None and b"authorization" in self.headers:
            return False  # nobody needs it here, so it is not kept either
        is_usual = self.keep_alive and not self.is_old and not self.extra and self._target == b"/"
        return is_usual and b"content-length" in self.headers and self.headers.keys().isdisjoint(_UNUSUAL)

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > self._policy.limits.max_head_bytes:
            self._connection.end_with(Response(431))
        else:
            self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._connection.is_ending:
            return
        self.keep_alive = self._parser.should_keep_alive()
        self.is_old = self._parser.get_http_version() == "1.0"
        headers, policy = self.headers, self._policy
        origin = headers.get(b"origin")
        if not policy.hosts.allows(headers.get(b"host")):
            self.refusal = getattr(policy.application, "host_refused", _HOST_REFUSED)
        elif origin is not None and not policy.origins.allows(origin):
            self.refusal = _ORIGIN_REFUSED
        elif origin is not None:
            self.extra = b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\n" % origin
        if int(headers.get(b"content-length", b"0")) > policy.limits.max_body_bytes:
            self._connection.end_with(Response(413))
        elif b"expect" in headers and not self.is_old:
            if headers[b"expect"].lower() != b"100-continue":
                self._connection.end_with(Response(417))
            elif self.refusal is None:
                self._connection.on_expectation()

    def on_body(self, chunk: bytes) -> None:
        self.body_bytes += len(chunk)
        if self.body_bytes > self._policy.limits.max_body_bytes:
            self._connection.end_with(Response(413))
        elif self.refusal is None:
            self._body.append(chunk)

    def on_message_complete(self) -> None:
        self.in_message = False
        if not self._connection.is_ending and not self._parser.should_upgrade():
            self._connection.on_request()

    def _without_upgrade(self) -> bytes:
        """The head again without its wish for another protocol, which this server may ignore; some clients always ask.

        The parser has taken everything after the head for that other protocol, so it has to be fed anew.
        """
        kept = [(name, value) for name, value in self.headers.items() if name not in (b"upgrade", b"connection")]
        method, self._parser = self._parser.get_method(), httptools.HttpRequestParser(self)
        lines = b"".join(b"%b: %b\r\n" % header for header in kept)
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (method, self._target, lines)
