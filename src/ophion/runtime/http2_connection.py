"""Client side of one HTTP/2 connection (RFC 9113), as far as gRPC calls need it.

    request ──▶ HEADERS, DATA (as the windows of the server allow) ──▶ transport
    transport ──▶ frames ──▶ Http2Reply (headers, body, trailers)

The client allows the server no push and no dynamic header table (`hpack`). A reply may have at most `max_reply_bytes`.
Between two requests the server may send at most `_MAX_FRAMES` frames, and a limited number of bytes that belong to no
reply. The client closes the connection of a server that breaks a rule.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Final, cast

from msgspec import Struct, field

from ophion.runtime.hpack import MAX_BLOCK_BYTES, HpackError, decode_headers

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD: Final = struct.Struct(">HBBBL")
"""Head of a frame: length (24 bits), type, flags, stream."""
_HEAD_BYTES: Final = 9
_NUMBER: Final = struct.Struct(">L")
_SETTING: Final = struct.Struct(">HL")
_MAX_FRAME_BYTES: Final = 16384
"""Maximum size of the content of a frame, in both directions. Every server accepts it."""
_MAX_FRAMES: Final = 4096
"""Maximum number of frames that the server may send after a request and before the next request."""
MAX_INTERIM_RESPONSES: Final = 8
"""Maximum number of header blocks with status 1xx before a reply. A block of 8 KB takes 20 milliseconds to decode."""
_MAX_WINDOW: Final = 2**31 - 1
_DEFAULT_WINDOW: Final = 65535
_MAX_STREAM: Final = 2**31 - 1

_DATA, _HEADERS, _PRIORITY, _RST_STREAM, _SETTINGS, _PUSH_PROMISE, _PING, _GOAWAY, _WINDOW_UPDATE, _CONTINUATION = (
    range(10)
)
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _WITH_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_HEADER_TABLE_SIZE, _ENABLE_PUSH, _INITIAL_WINDOW_SIZE, _MAX_HEADER_LIST_SIZE = 0x1, 0x2, 0x4, 0x6
_CANCEL = 0x8


class Http2Error(Exception):
    """Raised when the server sends no usable reply. The text gives the reason."""


class Http2Closed(Http2Error):
    """Raised when the connection ends before the reply, without an error of the protocol."""


class Http2Reply(Struct):
    """The reply to one request."""

    headers: dict[str, str] = {}
    body: bytearray = field(default_factory=bytearray)
    trailers: dict[str, str] | None = None
    """Headers after the body. If a reply has only one header block, `headers` and `trailers` both hold this block."""


class _Stream:
    """One request without a complete reply."""

    def __init__(self, done: asyncio.Future[Http2Reply], window: int) -> None:
        self.done = done
        self.reply = Http2Reply()
        self.window = window
        """Number of bytes that the server accepts on this stream."""
        self.unsent = memoryview(b"")
        self.interim_responses = 0


class Http2Connection(asyncio.Protocol):
    """One connection to a server. `asyncio` calls the methods of a protocol."""

    def __init__(self, max_reply_bytes: int) -> None:
        self.is_open = False
        """Whether the connection accepts another request."""
        self._max_reply_bytes = max_reply_bytes
        self._streams: dict[int, _Stream] = {}
        self._next_stream = 1
        self._window = _DEFAULT_WINDOW
        """Number of bytes that the server accepts on all streams together."""
        self._stream_window = _DEFAULT_WINDOW
        """Window of a new stream."""
        self._unacknowledged = 0
        """Received bytes of bodies that no window update has returned to the server."""
        self._received = b""
        self._output: list[bytes] = []
        self._frames = 0
        self._surplus_bytes = 0
        """Frames since the latest request, and bytes in those frames that are not the body of a reply."""
        self._has_settings = False
        self._has_ended = False
        self._block: tuple[int, int, bytes] | None = None
        """Stream, flags and first parts of a header block that is not complete."""

    async def request(self, block: bytes, body: bytes) -> Http2Reply:
        """Send a request with this encoded header block, and wait for its reply. Raises `Http2Error`."""
        if not self.is_open:
            raise Http2Closed("the connection is closed")
        number = self._next_stream
        self._next_stream += 2
        if self._next_stream > _MAX_STREAM:
            self.is_open = False
        self._frames = self._surplus_bytes = 0
        stream = _Stream(asyncio.get_running_loop().create_future(), self._stream_window)
        stream.unsent = memoryview(body)
        self._streams[number] = stream
        self._put(_HEADERS, _END_HEADERS, number, block)
        self._send_body(number, stream)
        self._flush()
        try:
            return await stream.done
        finally:
            if stream.done.done() and not stream.done.cancelled():
                stream.done.exception()  # if the caller was cancelled at the same moment, nothing else reads the error
            if self._streams.pop(number, None) is not None:
                self._put(_RST_STREAM, 0, number, _NUMBER.pack(_CANCEL))  # the caller no longer waits
                self._flush()
                self._end_if_done()

    def close(self) -> None:
        """Close the connection without waiting for the server. Requests without a reply end with `Http2Closed`."""
        self._end(Http2Closed("the connection was closed"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True
        window = self._max_reply_bytes
        settings = (
            (_HEADER_TABLE_SIZE, 0),
            (_ENABLE_PUSH, 0),
            (_INITIAL_WINDOW_SIZE, window),
            (_MAX_HEADER_LIST_SIZE, MAX_BLOCK_BYTES),
        )
        self._output.append(_PREFACE)
        self._put(_SETTINGS, 0, 0, b"".join(_SETTING.pack(*setting) for setting in settings))
        if window > _DEFAULT_WINDOW:
            self._put(_WINDOW_UPDATE, 0, 0, _NUMBER.pack(window - _DEFAULT_WINDOW))
        # do not flush: the first request follows in the same write

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(Http2Closed(str(exc) or type(exc).__name__ if exc else "the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        data = self._received + data if self._received else data
        at = 0
        try:
            while len(data) - at >= _HEAD_BYTES and not self._has_ended:
                high, low, kind, flags, stream = _HEAD.unpack_from(data, at)
                end = at + _HEAD_BYTES + (high << 8 | low)
                if end - at > _HEAD_BYTES + _MAX_FRAME_BYTES or not (self._has_settings or kind == _SETTINGS):
                    raise Http2Error(_not_http2(data[at:]))
                if end > len(data):
                    break
                self._on_frame(kind, flags, stream & _MAX_STREAM, data[at + _HEAD_BYTES : end])
                at = end
        except (Http2Error, HpackError) as error:
            self._end(error if isinstance(error, Http2Error) else Http2Error(str(error)))
            return
        if not self._has_ended:
            self._received = data[at:]
            self._flush()

    def _on_frame(self, kind: int, flags: int, stream: int, content: bytes) -> None:
        self._frames += 1
        if kind != _DATA or stream not in self._streams:
            self._surplus_bytes += len(content)
        if self._frames > _MAX_FRAMES or self._surplus_bytes > 2 * self._max_reply_bytes:
            raise Http2Error("the server sends too many frames")
        if self._block is not None and kind != _CONTINUATION:
            raise Http2Error("the server does not end a header block")
        handler = _HANDLERS.get(kind)
        if handler is not None:  # other frames, such as priorities, have no effect
            handler(self, flags, stream, content)

    def _on_data(self, flags: int, number: int, content: bytes) -> None:
        self._unacknowledged += len(content)
        if 2 * self._unacknowledged > self._max_reply_bytes:
            self._put(_WINDOW_UPDATE, 0, 0, _NUMBER.pack(self._unacknowledged))
            self._unacknowledged = 0
        stream = self._streams.get(number)
        if stream is None:
            self._check_old(number)
            return
        stream.reply.body += _without_padding(flags, content)
        if len(stream.reply.body) > self._max_reply_bytes:
            raise Http2Error("the reply is too long")
        if flags & _END_STREAM:
            self._finish(number, stream)

    def _on_headers(self, flags: int, number: int, content: bytes) -> None:
        content = _without_padding(flags, content)
        if flags & _WITH_PRIORITY:
            content = content[5:]
        self._block = (number, flags, content)
        self._read_block()

    def _on_continuation(self, flags: int, number: int, content: bytes) -> None:
        if self._block is None or self._block[0] != number:
            raise Http2Error("the server continues a header block that has not begun")
        _, begun, block = self._block
        self._block = (number, begun | flags & _END_HEADERS, block + content)
        self._read_block()

    def _read_block(self) -> None:
        assert self._block is not None
        number, flags, block = self._block
        if len(block) > MAX_BLOCK_BYTES:
            raise Http2Error("the header block is too long")
        if not flags & _END_HEADERS:
            return
        self._block = None
        stream = self._streams.get(number)
        if stream is None:
            self._check_old(number)
            return
        headers = dict(decode_headers(block))
        reply = stream.reply
        if headers.get(":status", "").startswith("1") and not reply.headers:
            stream.interim_responses += 1
            if flags & _END_STREAM:
                raise Http2Error("the reply ends with an interim response")
            if stream.interim_responses > MAX_INTERIM_RESPONSES:
                raise Http2Error("too many interim responses")
            return
        if not reply.headers:
            reply.headers = headers
        elif not flags & _END_STREAM:
            raise Http2Error("the server sends headers within a body")
        if flags & _END_STREAM:
            reply.trailers = headers
            self._finish(number, stream)

    def _on_reset(self, flags: int, number: int, content: bytes) -> None:
        code = _number(content)
        stream = self._streams.pop(number, None)
        if stream is None:
            self._check_old(number)
            return
        _fail(stream, Http2Error(f"the server has reset the stream with code {code}"))

    def _on_settings(self, flags: int, number: int, content: bytes) -> None:
        self._has_settings = True
        if flags & _ACK:
            return
        if len(content) % _SETTING.size:
            raise Http2Error("malformed settings")
        for name, value in _SETTING.iter_unpack(content):
            if name == _INITIAL_WINDOW_SIZE:
                if value > _MAX_WINDOW:
                    raise Http2Error("a window is too large")
                for stream in self._streams.values():
                    stream.window += value - self._stream_window
                self._stream_window = value
        self._put(_SETTINGS, _ACK, 0, b"")
        self._send_bodies()

    def _on_push(self, flags: int, number: int, content: bytes) -> None:
        raise Http2Error("the server pushes a reply without a request")

    def _on_ping(self, flags: int, number: int, content: bytes) -> None:
        if len(content) != 8:
            raise Http2Error("malformed ping")
        if not flags & _ACK:
            self._put(_PING, _ACK, 0, content)

    def _on_goaway(self, flags: int, number: int, content: bytes) -> None:
        """End the requests that the server has not begun.

        Requests that the server has begun may still get their replies.
        """
        self.is_open = False
        last = _number(content[:4]) & _MAX_STREAM
        for unknown in [known for known in self._streams if known > last]:
            _fail(self._streams.pop(unknown), Http2Closed("the server closes the connection"))
        self._end_if_done()

    def _on_window_update(self, flags: int, number: int, content: bytes) -> None:
        increment = _number(content) & _MAX_WINDOW
        if number == 0:
            self._window += increment
            self._send_bodies()
        elif (stream := self._streams.get(number)) is not None:
            stream.window += increment
            self._send_body(number, stream)
        if self._window > _MAX_WINDOW or any(stream.window > _MAX_WINDOW for stream in self._streams.values()):
            raise Http2Error("a window is too large")

    def _check_old(self, number: int) -> None:
        """Check that a stream without an open request has existed: frames may still arrive after the end of a stream.
        Raises `Http2Error` for any other stream.
        """
        if number % 2 == 0 or number >= self._next_stream:
            raise Http2Error("the server replies to no request")

    def _send_bodies(self) -> None:
        for number, stream in self._streams.items():
            self._send_body(number, stream)

    def _send_body(self, number: int, stream: _Stream) -> None:
        """Send as much of a body as the windows allow. Every body has at least one byte."""
        while stream.unsent and (size := min(self._window, stream.window, _MAX_FRAME_BYTES)) > 0:
            part, stream.unsent = stream.unsent[:size], stream.unsent[size:]
            self._window -= len(part)
            stream.window -= len(part)
            self._put(_DATA, 0 if stream.unsent else _END_STREAM, number, part)

    def _finish(self, number: int, stream: _Stream) -> None:
        del self._streams[number]
        if stream.unsent:
            self._put(_RST_STREAM, 0, number, _NUMBER.pack(_CANCEL))  # the reply came before the end of the request
        if not stream.done.done():
            stream.done.set_result(stream.reply)
        self._end_if_done()

    def _end_if_done(self) -> None:
        """Close a connection that accepts no request, after its last reply."""
        if not self.is_open and not self._streams:
            self.close()

    def _put(self, kind: int, flags: int, stream: int, content: bytes | memoryview) -> None:
        size = len(content)
        self._output.append(_HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream))
        self._output.append(bytes(content))

    def _flush(self) -> None:
        if self._output:
            self._transport.write(b"".join(self._output))
            self._output.clear()

    def _end(self, error: Http2Error) -> None:
        self.is_open = False
        self._has_ended = True
        self._received = b""
        for stream in self._streams.values():
            _fail(stream, error)
        self._streams.clear()
        self._transport.abort()


def _fail(stream: _Stream, error: Http2Error) -> None:
    if not stream.done.done():
        stream.done.set_exception(error)


def _number(content: bytes) -> int:
    if len(content) != _NUMBER.size:
        raise Http2Error("malformed frame")
    number: int = _NUMBER.unpack(content)[0]
    return number


def _without_padding(flags: int, content: bytes) -> bytes:
    if not flags & _PADDED:
        return content
    padding = content[0] if content else 0
    if padding >= len(content):
        raise Http2Error("malformed padding")
    return content[1 : len(content) - padding]


def _not_http2(data: bytes) -> str:
    return "the server speaks HTTP/1, not HTTP/2" if data.startswith(b"HTTP/1") else "the server does not speak HTTP/2"


_HANDLERS: Final = {
    _DATA: Http2Connection._on_data,
    _HEADERS: Http2Connection._on_headers,
    _RST_STREAM: Http2Connection._on_reset,
    _SETTINGS: Http2Connection._on_settings,
    _PUSH_PROMISE: Http2Connection._on_push,
    _PING: Http2Connection._on_ping,
    _GOAWAY: Http2Connection._on_goaway,
    _WINDOW_UPDATE: Http2Connection._on_window_update,
    _CONTINUATION: Http2Connection._on_continuation,
}
