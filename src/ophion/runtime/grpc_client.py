"""gRPC client for one server: unary calls over one connection, with one deadline for the whole call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from ophion.runtime.hpack import encode_headers
from ophion.runtime.http2_connection import Http2Closed, Http2Connection, Http2Error, Http2Reply
from ophion.runtime.http_client import INVALID_NAME, connect_problem
from ophion.runtime.terminal_text import escape_line

if TYPE_CHECKING:
    import ssl

_ALPN: Final = "h2"
_PREFIX_BYTES: Final = 5
"""Bytes before each message: one for compression, four for the length of the message."""
_MAX_TEXT: Final = 200
"""Maximum number of characters of the server's error text."""


class GrpcError(Exception):
    """Raised when the server sends no usable reply. The text gives the reason."""


class GrpcClient:
    """Unary calls to one server; raises `GrpcError`. Messages are encoded bytes."""

    def __init__(self, url: str, tls: ssl.SSLContext | None, timeout_s: float, max_reply_bytes: int) -> None:
        """Create a client, and set the application protocol (ALPN) of the TLS context."""
        parts = urlsplit(url)
        self.url = url
        self.timeout_s = timeout_s
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._scheme = parts.scheme
        self._authority = parts.netloc
        self._tls = tls
        if tls is not None:
            tls.set_alpn_protocols([_ALPN])
        self._max_reply_bytes = max_reply_bytes
        self._heads: dict[str, bytes] = {}
        """Encoded request headers of each method."""
        self._connection: Http2Connection | None = None
        self._connecting = asyncio.Lock()
        self._disconnects = 0
        """Number of calls of `disconnect`."""

    async def call(self, method: str, message: bytes) -> bytes:
        """Call a method, such as `/package.Service/Method`, in a task. Returns the message of the reply.

        The call is repeated if the server closes a connection that was open before the call. So the server may execute
        a call twice. It may also have executed a call that raises an error here.
        """
        head = self._heads.get(method)
        if head is None:
            head = self._heads[method] = self._head(method)
        body = b"\0" + len(message).to_bytes(4, "big") + message
        try:
            async with asyncio.timeout(self.timeout_s):
                return _message(await self._exchange(head, body, self._disconnects))
        except TimeoutError:
            raise GrpcError(f"no reply within {self.timeout_s:g} s") from None
        except Http2Error as error:
            raise GrpcError(str(error)) from None
        except OSError as error:
            raise GrpcError(connect_problem(error)) from None
        except UnicodeError:
            raise GrpcError(INVALID_NAME) from None

    def disconnect(self) -> None:
        """Close the connection. Calls that have begun end with an error and do not connect again; later calls do."""
        self._disconnects += 1
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _exchange(self, head: bytes, body: bytes, disconnects: int) -> Http2Reply:
        """Send a request. `disconnects` is the number of calls of `disconnect` when the call began."""
        while (known := self._connection) is not None and known.is_open:
            try:
                return await known.request(head, body)
            except Http2Closed:
                if self._connection is known:
                    self._connection = None
                self._check(disconnects)
        return await (await self._connect(disconnects)).request(head, body)

    async def _connect(self, disconnects: int) -> Http2Connection:
        async with self._connecting:
            self._check(disconnects)
            known = self._connection
            if known is not None and known.is_open:  # another call has connected
                return known
            transport, connection = await asyncio.get_running_loop().create_connection(
                lambda: Http2Connection(self._max_reply_bytes), self._host, self._port, ssl=self._tls
            )
            encryption: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
            if encryption is not None and encryption.selected_alpn_protocol() != _ALPN:
                connection.close()
                raise GrpcError("the server does not offer HTTP/2 over TLS")
            if self._disconnects != disconnects:
                connection.close()
            self._check(disconnects)
            self._connection = connection
            return connection

    def _check(self, disconnects: int) -> None:
        """Raise `Http2Closed` if the client was disconnected since the call began."""
        if self._disconnects != disconnects:
            raise Http2Closed("the connection was closed")

    def _head(self, method: str) -> bytes:
        return encode_headers(
            (
                (":method", "POST"),
                (":scheme", self._scheme),
                (":path", method),
                (":authority", self._authority),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
            )
        )


def _message(reply: Http2Reply) -> bytes:
    """Return the only message of a reply. Raises `GrpcError` if the call failed."""
    status = reply.headers.get(":status", "")
    code = (reply.trailers or {}).get("grpc-status")
    if code is None:
        raise GrpcError(f"the server does not speak gRPC (HTTP status {escape_line(status[:_MAX_TEXT]) or 'unknown'})")
    if code != "0":
        text = unquote((reply.trailers or {}).get("grpc-message", "")[:_MAX_TEXT], errors="replace")
        raise GrpcError(escape_line(f"{text} (gRPC status {code[:_MAX_TEXT]})"))
    body = reply.body
    if (
        len(body) < _PREFIX_BYTES
        or body[0] != 0
        or int.from_bytes(body[1:_PREFIX_BYTES], "big") != len(body) - _PREFIX_BYTES
    ):
        raise GrpcError("the reply is not one message without compression")
    return bytes(body[_PREFIX_BYTES:])
