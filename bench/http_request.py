"""JSON-RPC requests over HTTP as bytes, for clients that must take less time than the node."""

from __future__ import annotations

import json


def post(body: bytes, headers: bytes = b"") -> bytes:
    """Return an HTTP request with this body. `headers` are further lines, each with its line end."""
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n"
    return head % (headers, len(body)) + body


def request(method: str, *params: object, headers: bytes = b"") -> bytes:
    """Return an HTTP request with one call."""
    return post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode(), headers)
