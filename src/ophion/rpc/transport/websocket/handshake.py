"""The opening handshake of a WebSocket client (RFC 6455, 4): an HTTP request head and its answer.

A web page may open a WebSocket to any server without a preflight, but the browser sends the `Origin` of the page. The
origin must be allowed, as for HTTP. Programs that are not browsers send no origin.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

import httptools

from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.messages import TEXT, Response
from ophion.rpc.transport.origins import OriginList

MAX_BYTES: Final = 64 * 1024
_MAX_HEADERS: Final = 256
_MAX_LIST_BYTES: Final = 4 * 1024
"""Maximum size of a header that is split at commas."""
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_ONCE: Final = frozenset(
    (b"authorization", b"content-length", b"host", b"origin", b"sec-websocket-key", b"sec-websocket-version")
)
_LISTS: Final = frozenset((b"connection", b"sec-websocket-protocol", b"upgrade"))
NOT_HTTP: Final = Response(400, (b"Websocket endpoint can't handle HTTP requests",), TEXT)
_HOST_REFUSED: Final = Response(403, (b'{"message":"Host not authorized."}',), b"application/json; charset=utf-8")
_ORIGIN_REFUSED: Final = Response(403)
_OTHER_VERSION: Final = Response(426, (b"Websocket version 13 is spoken here",), TEXT, b"Sec-WebSocket-Version: 13\r\n")


class Handshake:
    """Parses the request head of one client. httptools calls its `on_...` methods."""

    def __init__(self) -> None:
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._size = 0
        self._is_repeated = self._is_too_large = False
        self._header_count = 0
        self._is_whole = False
        self.headers: dict[bytes, bytes] = {}

    def feed(self, data: bytes) -> int | Response | None:
        """Parse some bytes. Returns the position where frames begin, a refusal, or None if the request head is
        incomplete.
        """
        parser = self._parser
        if parser is None:
            return NOT_HTTP
        self._size += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._parser = None
            return self._checked(parser.get_method(), parser.get_http_version()) or int(upgrade.args[0])
        except httptools.HttpParserError:
            return NOT_HTTP
        if self._is_whole:
            return NOT_HTTP
        return Response(431) if self._size > MAX_BYTES or self._is_too_large else None

    @property
    def held_bytes(self) -> int:
        """Return the bytes held for an incomplete request head."""
        return 0 if self._parser is None else self._size

    def close(self) -> None:
        """Release the request head and the parser. This breaks the reference cycle between the parser and this
        object.
        """
        self._parser = None
        self.headers = {}

    def refusal(self, hosts: HostList, origins: OriginList) -> Response | None:
        """Return a refusal if the host or origin is not allowed, else None."""
        if not hosts.allows(self.headers.get(b"host")):
            return _HOST_REFUSED
        origin = self.headers.get(b"origin")
        return None if origin is None or origins.allows(origin) else _ORIGIN_REFUSED

    def answer(self) -> bytes:
        """Return the response that accepts the handshake."""
        # lazy import: hashlib loads OpenSSL (three megabytes), which a node without clients does not need
        import hashlib

        accepted = base64.b64encode(hashlib.sha1(self.headers[b"sec-websocket-key"] + _GUID).digest())
        lines = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %b\r\n" % accepted
        # confirm the sub-protocol `undefined`, because some libraries request it by mistake and fail without a
        # confirmation
        if b"undefined" in _words(self.headers.get(b"sec-websocket-protocol", b"")):
            lines += b"Sec-WebSocket-Protocol: undefined\r\n"
        return b"HTTP/1.1 101 Switching Protocols\r\n%b\r\n" % lines

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self._header_count += 1
        if name in self.headers:
            self._is_repeated |= name in _ONCE
            value = self.headers[name] + b"," + value
        if self._header_count > _MAX_HEADERS or (name in _LISTS and len(value) > _MAX_LIST_BYTES):
            self._is_too_large = True
        else:
            self.headers[name] = value

    def on_message_complete(self) -> None:
        self._is_whole = True

    def _checked(self, method: bytes, version: str) -> Response | None:
        headers = self.headers
        if self._is_too_large:
            return Response(431)
        if method != b"GET" or version != "1.1" or self._is_repeated or self._size > MAX_BYTES:
            return NOT_HTTP
        if b"websocket" not in _words(headers.get(b"upgrade", b"")) or b"content-length" in headers:
            return NOT_HTTP
        if b"upgrade" not in _words(headers.get(b"connection", b"")) or b"transfer-encoding" in headers:
            return NOT_HTTP
        if headers.get(b"sec-websocket-version") != b"13":
            return _OTHER_VERSION
        return None if _is_key(headers.get(b"sec-websocket-key", b"")) else NOT_HTTP


def _words(value: bytes) -> list[bytes]:
    return [word.strip().lower() for word in value.split(b",")]


def _is_key(key: bytes) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == 16
    except binascii.Error:
        return False
