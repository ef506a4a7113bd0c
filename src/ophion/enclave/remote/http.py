"""A small HTTP/1.1 client for one server: kept connections, bounded answers, one time limit for everything."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httptools
from msgspec import Struct, field

from ophion.enclave.interface import EnclaveAway

if TYPE_CHECKING:
    import ssl

_MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
_MAX_CONNECTIONS: Final = 8
_READ_BYTES: Final = 64 * 1024


class Answer(Struct):
    """What a server said."""

    status: int = 0
    body: bytearray = field(default_factory=bytearray)
    is_complete: bool = False


class _Reader:
    """The callbacks of httptools."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def on_body(self, body: bytes) -> None:
        self._answer.body += body
        if len(self._answer.body) > _MAX_ANSWER_BYTES:
            raise ValueError("too long an answer")

    def on_message_complete(self) -> None:
        self._answer.is_complete = True


class HttpClient:
    """Requests to one server; `EnclaveAway` says why there was no answer."""

    def __init__(
        self, url: str, tls: ssl.SSLContext | None = None, pin: bytes | None = None, timeout_s: float = 30.0
    ) -> None:
        """`pin`: SHA-256 of the server's certificate, where the context does not judge it."""
        parts = urlsplit(url)
        self.url = url
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._path = parts.path.rstrip("/")
        self._tls = tls
        self._pin = pin
        self._timeout_s = timeout_s
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._places = asyncio.Semaphore(_MAX_CONNECTIONS)

    async def get(self, path: str) -> Answer:
        """Ask a question."""
        return await self._request("GET", path, b"", {})

    async def post(self, path: str, body: bytes, content_type: str) -> Answer:
        """Ask for an operation."""
        return await self._request("POST", path, body, {"Content-Type": content_type})

    def close(self) -> None:
        """Give the connections back."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def _request(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        lines = [
            f"{method} {self._path}{path} HTTP/1.1",
            f"Host: {self._host}:{self._port}",
            f"Content-Length: {len(body)}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        message = "\r\n".join((*lines, "", "")).encode() + body
        # requests of clients begin outside of any task, where `asyncio.timeout` does not work
        return await asyncio.get_running_loop().create_task(self._answer(message))

    async def _answer(self, message: bytes) -> Answer:
        try:
            async with asyncio.timeout(self._timeout_s), self._places:
                while self._idle:
                    # a kept connection may have been closed meanwhile: then it says nothing at all
                    answer = await self._exchange(*self._idle.pop(), message)
                    if answer is not None:
                        return answer
                answer = await self._exchange(*await self._connect(), message)
        except (
            OSError,
            TimeoutError,
            ValueError,
            EOFError,
            httptools.HttpParserError,
            httptools.HttpParserUpgrade,  # it wants to speak something else
        ) as error:
            raise EnclaveAway(
                f"the enclave at {self.url} does not answer: {str(error) or type(error).__name__}"
            ) from None
        if answer is None:
            raise EnclaveAway(f"the enclave at {self.url} closes the connection")
        return answer

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        if self._pin is not None:
            shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True) or b""
            if not compare_digest(sha256(shown).digest(), self._pin):
                writer.close()
                raise OSError("its certificate is not the known one")
        return reader, writer

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes
    ) -> Answer | None:
        """None where the connection ends before the first byte of an answer."""
        answer = Answer()
        parser = httptools.HttpResponseParser(_Reader(answer))
        is_kept = has_begun = False
        try:
            try:
                writer.write(message)
                await writer.drain()
                while not answer.is_complete:
                    data = await reader.read(_READ_BYTES)
                    if not data:
                        break
                    has_begun = True
                    parser.feed_data(data)
            except (ConnectionError, httptools.HttpParserCallbackError) as error:
                if has_begun or not isinstance(error, ConnectionError):
                    raise
            if not has_begun:
                return None
            if not answer.is_complete:
                raise EOFError("half an answer")
            answer.status = parser.get_status_code()
            is_kept = parser.should_keep_alive()
            return answer
        finally:
            if is_kept and len(self._idle) < _MAX_CONNECTIONS:
                self._idle.append((reader, writer))
            else:
                writer.close()
