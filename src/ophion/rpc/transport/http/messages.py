"""HTTP messages: parsed requests, responses, and the bytes of response heads."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ophion.rpc.transport.streaming import ResponseHead
from ophion.runtime.chunked_body import Piece

JSON: Final = b"application/json"
TEXT: Final = b"text/plain; charset=utf-8"

KEPT_HEADS: Final = 1024
_JSON_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
JSON_HEADS: Final = tuple(_JSON_HEAD % size for size in range(KEPT_HEADS))

_REASONS: Final[Mapping[int, bytes]] = {
    200: b"OK",
    201: b"Created",
    204: b"No Content",
    304: b"Not Modified",
    308: b"Permanent Redirect",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    408: b"Request Timeout",
    411: b"Length Required",
    413: b"Request Entity Too Large",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
}
"""Reason phrases of the statuses that this node sends."""

GZIP: Final = b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_MAX_FIELDS: Final = 16
"""Maximum fields of a query. A head could hold tens of thousands of fields, which take tens of milliseconds to
parse.
"""


class Request(Struct):
    """A complete HTTP request."""

    method: bytes
    path: bytes
    query: bytes
    headers: Mapping[bytes, bytes]
    """Headers by lower-case name. A repeated header has its last value."""
    body: bytes
    address: str = ""
    """IP address of the client; empty for an API call (`Application.plain`), which does not need the address."""

    @property
    def wants_html(self) -> bool:
        """Return whether the client is a browser: its `Accept` header names HTML (`*/*` does not count)."""
        return b"text/html" in self.headers.get(b"accept", b"").lower()

    def fields(self) -> dict[str, list[str]]:
        """Return the fields of the query. Raises `ValueError` if there are too many fields."""
        return urllib.parse.parse_qs(self.query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MAX_FIELDS)


class Response(Struct, frozen=True):
    """A response that is not a plain JSON answer."""

    status: int
    body: tuple[Piece, ...] = ()
    content_type: bytes | None = None
    headers: bytes = b""
    """Additional header lines, each ending with CRLF."""
    reason: bytes | None = None


_JSON_SHAPE: Final = Response(200, (), JSON)


def media_type(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the media type of a request body, without parameters."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower()


def json_head(size: int) -> bytes:
    """Return the head of a JSON answer with status 200 on a persistent connection."""
    return JSON_HEADS[size] if size < KEPT_HEADS else _JSON_HEAD % size


def response_head(response: Response, extra: bytes, keep_alive: bool, is_old: bool) -> bytes:
    """Return the head of any response. `is_old` is an HTTP/1.0 client, which needs an explicit keep-alive."""
    lines = _first_lines(response)
    lines += b"Content-Length: %d\r\n" % sum(map(len, response.body))
    if not keep_alive:
        lines += b"Connection: close\r\n"
    elif is_old:
        lines += b"Connection: keep-alive\r\n"
    return lines + response.headers + extra + b"\r\n"


def chunked_head(extra: bytes, keep_alive: bool, shape: ResponseHead | None = None) -> bytes:
    """Return the head of a chunked answer. Without a shape, the answer is JSON."""
    shape = shape or _JSON_SHAPE
    ending = b"" if keep_alive else b"Connection: close\r\n"
    return _first_lines(shape) + b"Transfer-Encoding: chunked\r\n" + ending + shape.headers + extra + b"\r\n"


def _reason(status: int) -> bytes:
    return _REASONS.get(status) or _rare_reason(status)


def _rare_reason(status: int) -> bytes:
    from http import HTTPStatus  # lazy import: http is slow to load

    return HTTPStatus(status).phrase.encode() if status in set(HTTPStatus) else b"Unknown"


def _first_lines(shape: ResponseHead) -> bytes:
    lines = b"HTTP/1.1 %d %b\r\n" % (shape.status, shape.reason or _reason(shape.status))
    return lines if shape.content_type is None else lines + b"Content-Type: %b\r\n" % shape.content_type


def preflight(requested: bytes = b"") -> Response:
    """Answer a CORS preflight that names these request headers (json-rpc.md 1.7)."""
    # the wildcard `*` does not include Authorization, so list Authorization by name
    has_token = b"authorization" in (name.strip().lower() for name in requested.split(b","))
    allowed = b"*,content-type,authorization" if has_token else b"*,content-type"
    lines = b"Access-Control-Allow-Headers: %b\r\nAccess-Control-Allow-Methods: GET, POST, OPTIONS\r\n" % allowed
    return Response(200, headers=lines)
