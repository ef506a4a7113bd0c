"""HTTP/1.1 client for one server: reused connections, bounded replies, one deadline for the whole request."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httptools
from msgspec import Struct, field

if TYPE_CHECKING:
    import ssl

_MAX_HEAD_BYTES: Final = 64 * 1024
_MAX_REPLY_BYTES: Final = 8 * 1024 * 1024
_MAX_CONNECTIONS: Final = 8
_READ_BYTES: Final = 64 * 1024


class HttpError(Exception):
    """Raised when the server sends no usable reply. The text gives the reason."""


class HttpUnreachable(HttpError):
    """Raised when no connection to the server is possible."""


class HttpTimeout(HttpError):
    """Raised when the deadline passes before the reply is complete."""


class HttpReply(Struct):
    """The reply of a server."""

    status: int = 0
    reason: str = ""
    body: bytearray = field(default_factory=bytearray)


class _ReplyReader:
    """Parser callbacks that collect one reply within bounds."""

    def __init__(self, max_bytes: int) -> None:
        self.reply = HttpReply()
        self.is_complete = False
        self.is_last = False
        """Whether the server closes the connection after this reply."""
        self.has_head = False
        self.ends_with_connection = True
        """Whether the body ends when the connection closes, because the reply has neither a length nor chunks."""
        self._max_bytes = max_bytes

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise ValueError("bytes after the reply")

    def on_status(self, reason: bytes) -> None:
        self.reply.reason += reason.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"content-length" and int(value) > self._max_bytes:
            raise ValueError("the reply is too long")
        if name in (b"content-length", b"transfer-encoding"):
            self.ends_with_connection = False
        elif name == b"connection" and b"close" in value.lower():
            self.is_last = True

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, body: bytes) -> None:
        self.reply.body += body
        if len(self.reply.body) > self._max_bytes:
            raise ValueError("the reply is too long")

    def on_message_complete(self) -> None:
        self.is_complete = True


class HttpConnection:
    """One connection to the server, for one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_reply_bytes: int) -> None:
        self.is_reusable = True
        """Whether the connection can be used for another request."""
        self._reader = reader
        self._writer = writer
        self._max_reply_bytes = max_reply_bytes

    async def exchange(self, message: bytes) -> HttpReply | None:
        """Send a request and read its reply. Returns None if the connection ends before the first byte of the reply.

        Raises `HttpError`.
        """
        self.is_reusable = False
        try:
            return await self._exchange(message)
        except httptools.HttpParserCallbackError as error:
            raise HttpError(str(error.__context__ or error)) from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, OSError, ValueError) as error:
            raise HttpError(str(error) or type(error).__name__) from None

    async def _exchange(self, message: bytes) -> HttpReply | None:
        collected = _ReplyReader(self._max_reply_bytes)
        parser = httptools.HttpResponseParser(collected)
        received, has_surplus = 0, False
        try:
            self._writer.write(message)
            await self._writer.drain()
            while not collected.is_complete and (data := await self._reader.read(_READ_BYTES)):
                received += len(data)
                parser.feed_data(data)
                if not collected.has_head and received > _MAX_HEAD_BYTES:
                    raise ValueError("the head of the reply is too long")
        except ConnectionError:
            if received:
                raise
        except httptools.HttpParserError:
            has_surplus = True
            if not collected.is_complete:
                raise
        if not received:
            return None
        if not collected.is_complete and not (collected.has_head and collected.ends_with_connection):
            raise ValueError("the reply is incomplete")
        collected.reply.status = parser.get_status_code()
        # do not use `parser.should_keep_alive`, because it is False after the end of a body
        is_open = parser.get_http_version() == "1.1" and not collected.is_last
        self.is_reusable = collected.is_complete and is_open and not has_surplus
        return collected.reply

    def abort(self) -> None:
        """Close the connection without waiting for the server."""
        self._writer.close()

    async def close(self) -> None:
        """Close the connection and wait until it is closed."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return


class HttpClient:
    """Requests to one server; raises `HttpError`."""

    def __init__(
        self,
        url: str,
        tls: ssl.SSLContext | None = None,
        pin: bytes | None = None,
        timeout_s: float = 30.0,
        max_reply_bytes: int = _MAX_REPLY_BYTES,
    ) -> None:
        """Create a client. If the TLS context does not verify certificates, `pin` is the SHA-256 hash of the server's
        certificate.
        """
        parts = urlsplit(url)
        self.url = url
        self.timeout_s = timeout_s
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._path = parts.path.rstrip("/")
        self._authority = f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"
        self._tls = tls
        self._pin = pin
        self._max_reply_bytes = max_reply_bytes
        self._idle: list[HttpConnection] = []
        self._slots = asyncio.Semaphore(_MAX_CONNECTIONS)

    def head(self, method: str, target: str, headers: Mapping[str, str]) -> bytes:
        """Encode the head of a request up to the value of `Content-Length`."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._authority}"]
        lines += (f"{name}: {value}" for name, value in headers.items())
        return "\r\n".join([*lines, "Content-Length: "]).encode()

    async def connect(self) -> HttpConnection:
        """Open a connection that only the caller uses, without a deadline."""
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        except OSError as error:
            raise HttpUnreachable(connect_problem(error)) from None
        except UnicodeError:
            raise HttpUnreachable(INVALID_NAME) from None
        if self._pin is not None:
            shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True) or b""
            if not compare_digest(sha256(shown).digest(), self._pin):
                writer.close()
                raise HttpUnreachable("its certificate is not the known one")
        return HttpConnection(reader, writer, self._max_reply_bytes)

    async def request(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> HttpReply:
        """Send a request over an idle or a new connection. `path` is appended to the path of the URL."""
        message = b"%b%d\r\n\r\n%b" % (self.head(method, self._path + path, headers or {}), len(body), body)
        # `asyncio.timeout` needs a task, and callers may run outside of a task, so create a task
        return await asyncio.get_running_loop().create_task(self._request(message))

    async def _request(self, message: bytes) -> HttpReply:
        try:
            async with asyncio.timeout(self.timeout_s), self._slots:
                while self._idle:
                    # the reply is None if the server has closed the idle connection: try the next idle connection
                    reply = await self._reply(self._idle.pop(), message)
                    if reply is not None:
                        return reply
                reply = await self._reply(await self.connect(), message)
        except TimeoutError:
            raise HttpTimeout(f"no reply within {self.timeout_s:g} s") from None
        if reply is None:
            raise HttpError("the server closed the connection")
        return reply

    async def _reply(self, connection: HttpConnection, message: bytes) -> HttpReply | None:
        try:
            return await connection.exchange(message)
        finally:
            if connection.is_reusable and len(self._idle) < _MAX_CONNECTIONS:
                self._idle.append(connection)
            else:
                connection.abort()

    def close(self) -> None:
        """Close the idle connections."""
        for connection in self._idle:
            connection.abort()
        self._idle.clear()


INVALID_NAME: Final = "its name is not a valid host name"


def connect_problem(error: OSError) -> str:
    """Return the system's error text. asyncio's own text differs for a single connection and for several addresses."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    text = error.strerror or str(error) or type(error).__name__
    return "no address of this name accepts connections" if text.startswith("Multiple exceptions") else text
