"""Frames of HTTP/2, and a server for one client at a time that answers with given frames."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

from ophion.runtime.hpack import encode_headers

DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 1, 1, 4, 8, 32
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INITIAL_WINDOW_SIZE = 4
REPLY_HEADERS = encode_headers([(":status", "200"), ("content-type", "application/grpc")])
REPLY_TRAILERS = encode_headers([("grpc-status", "0"), ("grpc-message", "")])


class Frame(NamedTuple):
    """One frame. `stream` 0 is the connection."""

    kind: int
    flags: int = 0
    stream: int = 0
    content: bytes = b""

    def encode(self) -> bytes:
        return (
            len(self.content).to_bytes(3, "big") + bytes((self.kind, self.flags)) + number(self.stream) + self.content
        )


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def settings(**values: int) -> Frame:
    """Return a frame of settings. The only name is `window`."""
    content = b"".join(INITIAL_WINDOW_SIZE.to_bytes(2, "big") + number(value) for value in values.values())
    return Frame(SETTINGS, content=content)


def frames_of(data: bytes) -> Iterator[Frame]:
    """Split complete frames."""
    while data:
        size = int.from_bytes(data[:3], "big")
        yield Frame(data[3], data[4], int.from_bytes(data[5:9], "big"), data[9 : 9 + size])
        data = data[9 + size :]


def grpc_body(message: bytes) -> bytes:
    return b"\0" + number(len(message)) + message


def grpc_reply(stream: int, message: bytes, part_bytes: int = 16384) -> list[Frame]:
    """Return the frames of a successful reply."""
    body = grpc_body(message)
    parts = [body[at : at + part_bytes] for at in range(0, len(body), part_bytes)]
    return [
        Frame(HEADERS, END_HEADERS, stream, REPLY_HEADERS),
        *(Frame(DATA, 0, stream, part) for part in parts),
        Frame(HEADERS, END_HEADERS | END_STREAM, stream, REPLY_TRAILERS),
    ]


def grpc_failure(stream: int, code: str, text: str) -> list[Frame]:
    """Return the frames of a failed call, which has only trailers."""
    block = encode_headers([(":status", "200"), ("grpc-status", code), ("grpc-message", text)])
    return [Frame(HEADERS, END_HEADERS | END_STREAM, stream, block)]


def encoded(frames: list[Frame]) -> bytes:
    return b"".join(frame.encode() for frame in frames)


class Http2Server:
    """A server on loopback that answers each call with the frames that `answer` returns. None: the server closes the
    connection.
    """

    def __init__(self, answer: Callable[[int, bytes], list[Frame] | None], tls: ssl.SSLContext | None = None) -> None:
        """Create a server. `answer` gets the stream and the message of a call."""
        self.connections = 0
        self.messages: list[bytes] = []
        self._arrived = asyncio.Condition()
        self._answer = answer
        self._tls = tls

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        bodies: dict[int, bytes] = {}
        try:
            assert await reader.readexactly(len(PREFACE)) == PREFACE
            writer.write(settings().encode())
            while True:
                head = await reader.readexactly(9)
                content = await reader.readexactly(int.from_bytes(head[:3], "big"))
                kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
                if kind != DATA:
                    continue
                if content:
                    update = number(len(content))
                    writer.write(encoded([Frame(WINDOW_UPDATE, 0, 0, update), Frame(WINDOW_UPDATE, 0, stream, update)]))
                bodies[stream] = bodies.get(stream, b"") + content
                if flags & END_STREAM:
                    message = bodies.pop(stream)[5:]
                    self.messages.append(message)
                    async with self._arrived:
                        self._arrived.notify_all()
                    frames = self._answer(stream, message)
                    if frames is None:
                        break
                    writer.write(encoded(frames))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def wait_for(self, count: int) -> None:
        """Wait until the server has read this number of messages."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.messages) >= count)

    def play(self, story: Callable[[str], Awaitable[None]]) -> None:
        """Run a story with the URL of the server."""

        async def main() -> None:
            listening = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self._tls)
            scheme = "http" if self._tls is None else "https"
            async with asyncio.timeout(20):
                await story(f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
            listening.close()

        asyncio.run(main())
