"""Reads a response from a service and forwards it to a client.

A short response is forwarded whole. A long response is streamed: the gateway reads from the node only as fast as the
client reads, so a slow reader uses little memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import httptools

from ophion.gateway.error_responses import IncompleteResponse
from ophion.gateway.proxy_headers import answer_lines
from ophion.rpc.transport.http.messages import Response
from ophion.rpc.transport.streaming import StreamedAnswer

WHOLE_BYTES: Final = 64 * 1024
"""Maximum size in bytes of a response that is forwarded whole. Larger responses are streamed."""
_AHEAD_BYTES: Final = 64 * 1024
"""Maximum number of bytes that are read from the node ahead of the client."""
_WEIGHT: Final = 4 * _AHEAD_BYTES
"""Maximum memory of a streamed response, including the bytes of two socket reads beyond the limits."""
_MAX_HEAD_BYTES: Final = 64 * 1024
_MAX_WHOLE_BYTES: Final = 64 * 1024 * 1024
"""Maximum size in bytes of a response to an HTTP/1.0 client, because HTTP/1.0 has no chunked responses."""
_BODILESS: Final = (204, 304)


class PausableReader(Protocol):
    """The connection from which a response is read."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class StreamedBody:
    """Body of a streamed response (ophion.rpc.transport.streaming.Body)."""

    __slots__ = ("_abandon", "_changed", "_error", "_has_ended", "_held", "_is_paused", "_pieces", "_source", "first")

    max_bytes = _MAX_WHOLE_BYTES

    def __init__(self, first: bytes, source: PausableReader, abandon: Callable[[], None]) -> None:
        self.first = first
        self._source = source
        self._abandon = abandon
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._is_paused = self._has_ended = False
        self._error: IncompleteResponse | None = None
        self._changed = asyncio.Event()

    @property
    def weight(self) -> int:
        """Maximum bytes held for this response."""
        return _WEIGHT

    def add(self, piece: bytes) -> None:
        """Append bytes from the node."""
        self._pieces.append(piece)
        self._held += len(piece)
        self._changed.set()
        if self._held > _AHEAD_BYTES and not self._is_paused:
            self._is_paused = True
            self._source.pause_reading()

    def end(self, error: IncompleteResponse | None = None) -> None:
        """Mark the body as complete or as failed."""
        self._has_ended, self._error = True, error
        self._changed.set()
        self._go_on()

    async def next(self) -> bytes | None:
        """Return the next bytes of the body, or None at its end."""
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._has_ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        piece = self._pieces.popleft()
        self._held -= len(piece)
        if self._held <= _AHEAD_BYTES // 2:
            self._go_on()
        return piece

    def close(self) -> None:
        """Drop the rest of the response. If the response is incomplete, its connection is closed."""
        if not self._has_ended:
            self._has_ended = True
            self._abandon()
        self.first = b""
        self._pieces.clear()

    def _go_on(self) -> None:
        """If reading from the node is paused, read on: the rest of this response, or the next response on the
        connection.
        """
        if self._is_paused:
            self._is_paused = False
            self._source.resume_reading()


class UpstreamResponseReader:
    """Parses one response into a `Response`, or into a `StreamedAnswer` if it is long. httptools calls the `on_...`
    methods.
    """

    def __init__(
        self, source: PausableReader, deliver: Callable[[Response | StreamedAnswer], None], abandon: Callable[[], None]
    ):
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._source = source
        self._deliver = deliver
        self._abandon = abandon
        self._head_bytes = 0
        self._reason = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._body: StreamedBody | None = None
        self._has_head = False
        self.is_whole = False
        """Whether the response is complete."""
        self.keeps_alive = False
        """Whether the connection can be reused after the response."""

    def feed(self, data: bytes) -> bool:
        """Parse bytes. Returns False if the bytes are not an HTTP response, or if the response head is too long."""
        assert self._parser is not None
        if not self._has_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            # an upgrade is an error too, because the gateway never requests an upgrade
            return False
        return self._has_head or self._head_bytes <= _MAX_HEAD_BYTES

    def end(self) -> bool:
        """Handle the end of the connection. Returns True if this end completes a response that has no length."""
        if self._parser is None or not self._has_head or self._is_measured:
            return False
        self._finish()
        return True

    def close(self, error: IncompleteResponse | None = None) -> None:
        """Release the parser to break the reference cycle. An incomplete streamed response fails."""
        self._parser = None
        if self._body is not None and not self.is_whole:
            self._body.end(error)

    @property
    def has_begun(self) -> bool:
        """Whether the client has received part of the response."""
        return self._body is not None

    @property
    def _is_measured(self) -> bool:
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self._headers)

    def on_message_begin(self) -> None:
        self._headers.clear()
        self._reason = b""

    def on_status(self, status: bytes) -> None:
        self._reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        self._has_head = self._parser.get_status_code() >= 200
        self.keeps_alive = self._parser.should_keep_alive()

    def on_body(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._body is not None:
            self._body.add(chunk)
            return
        self._pieces.append(chunk)
        if self._size > WHOLE_BYTES:
            self._body = StreamedBody(b"".join(self._pieces), self._source, self._abandon)
            self._pieces.clear()
            self._deliver(StreamedAnswer(b"null", b"", self._body, b"", self._response(())))

    def on_message_complete(self) -> None:
        if self._has_head and not self.is_whole:
            self._finish()

    def _finish(self) -> None:
        self.is_whole = True
        if self._body is not None:
            self._body.end()
        else:
            self._deliver(self._response((b"".join(self._pieces),)))

    def _response(self, body: tuple[bytes, ...]) -> Response:
        assert self._parser is not None
        content_type = next((value for name, value in self._headers if name == b"content-type"), None)
        status = self._parser.get_status_code()
        return Response(
            status, () if status in _BODILESS else body, content_type, answer_lines(self._headers), self._reason or None
        )
