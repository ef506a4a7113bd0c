"""JSON-RPC of one node over kept connections."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from ophion.errors import CommandError

_ANSWER_LIMIT_S: Final = 30.0
_LARGEST_HEAD: Final = 64 * 1024
_LARGEST_ANSWER: Final = 256 * 2**20


class Endpoint:
    """Where requests go: an address, and what every request carries."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        self.url = url
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        authority = f"{self._host}:{self._port}" if ":" not in self._host else f"[{self._host}]:{self._port}"
        lines = [f"POST {path} HTTP/1.1", f"Host: {authority}", "Content-Type: application/json"]
        if token is not None:
            lines.append(f"Authorization: Bearer {token}")
        self._head = "\r\n".join([*lines, "Content-Length: "]).encode()

    async def connect(self) -> Connection:
        """A connection of its own; `CommandError` when nobody listens."""
        try:
            async with asyncio.timeout(_ANSWER_LIMIT_S):
                reader, writer = await asyncio.open_connection(
                    self._host, self._port, ssl=self._tls, limit=_LARGEST_HEAD
                )
        except (OSError, TimeoutError) as error:
            raise CommandError(f"{self.url} cannot be reached: {_why(error)}") from error
        return Connection(self, reader, writer, self._head)


def _why(error: OSError) -> str:
    """In the words of the system: asyncio has its own for a connection, and for several addresses of one name."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    words = error.strerror or str(error) or "no answer"
    return "nobody listens at any of its addresses" if words.startswith("Multiple exceptions") else words


class Connection:
    """One connection, one request at a time."""

    def __init__(
        self, endpoint: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        self._endpoint = endpoint
        self._reader = reader
        self._writer = writer
        self._head = head
        self._is_between = True
        """Whether nobody waits for an answer: what comes next would be taken for that of the next question."""

    async def ask(self, method: str, *params: Any) -> Any:
        """The result of a method; `CommandError` with the node's own words when it refuses."""
        answer = await self.post(orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        if not isinstance(answer, dict) or "result" not in answer:
            error = answer.get("error") if isinstance(answer, dict) else None
            words = error.get("message") if isinstance(error, dict) else "an answer that is none"
            raise CommandError(f"{self._endpoint.url}: {method}: {words}")
        return answer["result"]

    async def post(self, body: bytes) -> Any:
        """The JSON that answers a request or a batch."""
        if not self._is_between:
            raise CommandError(f"{self._endpoint.url}: a question was interrupted, this connection cannot go on")
        self._is_between = False
        try:
            async with asyncio.timeout(_ANSWER_LIMIT_S):
                self._writer.write(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
                await self._writer.drain()
                answer = orjson.loads(await self._answer())
        except TimeoutError as error:
            raise CommandError(f"{self._endpoint.url} did not answer for {_ANSWER_LIMIT_S:.0f} s") from error
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise CommandError(f"{self._endpoint.url} answers with something else: {error}") from error
        self._is_between = True
        return answer

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return

    async def _answer(self) -> bytes:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = await self._chunks()
        else:
            body = await self._sized(int(headers.get("content-length", "0")))
        status = head[0].split(" ", 2)[1:]
        if not body or body[:1] not in b"[{":
            raise ValueError(f"HTTP {' '.join(status)}")
        return body

    async def _chunks(self) -> bytes:
        parts, size = [], 0
        while length := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
            size += length
            parts.append(await self._sized(length, size))
            await self._reader.readexactly(2)
        await self._reader.readuntil(b"\r\n")
        return b"".join(parts)

    async def _sized(self, length: int, total: int = 0) -> bytes:
        if not 0 <= max(length, total) <= _LARGEST_ANSWER:
            raise ValueError("the answer is too long")
        return await self._reader.readexactly(length)
