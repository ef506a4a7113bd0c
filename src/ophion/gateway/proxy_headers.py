"""Headers of forwarded messages. Hop-by-hop headers are removed (RFC 9110, 7.6.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_HOP_BY_HOP: Final = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
_NOT_FORWARDED: Final = _HOP_BY_HOP | {b"host", b"origin", b"content-length", b"expect"}
"""Headers that are not forwarded. The gateway checks the origin itself, and a node would refuse the gateway's
origin.
"""
_NOT_ANSWERED: Final = _HOP_BY_HOP | {b"content-length", b"content-type", b"date"}


def target_of(path: bytes, query: bytes) -> bytes:
    """Return the target of a request line: path and query."""
    return path + b"?" + query if query else path


def request_head(method: bytes, target: bytes, host: bytes, headers: Mapping[bytes, bytes]) -> bytes:
    """Return a request head that lacks Content-Length and the final empty line."""
    left_out = _NOT_FORWARDED | _named(headers.get(b"connection"))
    lines = [b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (method, target, host)]
    lines += [b"%b: %b\r\n" % (name, value) for name, value in headers.items() if name not in left_out]
    return b"".join(lines)


def with_length(head: bytes, size: int) -> bytes:
    """Append Content-Length and the final empty line to a head from `request_head`."""
    return b"%bContent-Length: %d\r\n\r\n" % (head, size)


def with_body(head: bytes, body: bytes) -> bytes:
    """Return a complete request: head, Content-Length and body."""
    return with_length(head, len(body)) + body


def handshake(target: bytes, host: bytes, headers: Mapping[bytes, bytes]) -> bytes:
    """Return the head of the WebSocket handshake for the node."""
    return request_head(b"GET", target, host, headers) + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


def answer_lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the header lines of a response, except Content-Type and Content-Length."""
    every = list(headers)
    left_out = _NOT_ANSWERED | _named(next((value for name, value in every if name == b"connection"), None))
    return b"".join(b"%b: %b\r\n" % (name, value) for name, value in every if name not in left_out)


def _named(connection: bytes | None) -> frozenset[bytes]:
    """Return the header names that a `Connection` header lists."""
    return frozenset(word.strip().lower() for word in (connection or b"").split(b","))
