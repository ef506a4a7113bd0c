"""Heads as they are passed on: what concerns one connection alone stays on it (RFC 9110, 7.6.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_OF_THE_CONNECTION: Final = frozenset(
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
_NOT_ASKED: Final = _OF_THE_CONNECTION | {b"host", b"origin", b"content-length", b"expect"}
"""The origin has been judged by the gateway: a node knows nothing of the gateway's own page and would refuse it."""
_NOT_ANSWERED: Final = _OF_THE_CONNECTION | {b"content-length", b"content-type", b"date"}


def target_of(path: bytes, query: bytes) -> bytes:
    """What a request line names."""
    return path + b"?" + query if query else path


def request_head(method: bytes, target: bytes, host: bytes, headers: Mapping[bytes, bytes]) -> bytes:
    """The beginning of a head: everything but the length of the body and the empty line."""
    left_out = _NOT_ASKED | _named(headers.get(b"connection"))
    lines = [b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (method, target, host)]
    lines += [b"%b: %b\r\n" % (name, value) for name, value in headers.items() if name not in left_out]
    return b"".join(lines)


def with_length(head: bytes, size: int) -> bytes:
    """A whole head."""
    return b"%bContent-Length: %d\r\n\r\n" % (head, size)


def with_body(head: bytes, body: bytes) -> bytes:
    """A whole request."""
    return with_length(head, len(body)) + body


def handshake(target: bytes, host: bytes, headers: Mapping[bytes, bytes]) -> bytes:
    """The head that asks a node for a WebSocket."""
    return request_head(b"GET", target, host, headers) + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


def answer_lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Header lines of an answer beside its type and its length."""
    kept = list(headers)
    left_out = _NOT_ANSWERED | _named(next((value for name, value in kept if name == b"connection"), None))
    return b"".join(b"%b: %b\r\n" % (name, value) for name, value in kept if name not in left_out)


def _named(connection: bytes | None) -> frozenset[bytes]:
    """Headers that a `Connection` header says are for this connection alone."""
    return frozenset(word.strip().lower() for word in (connection or b"").split(b","))
