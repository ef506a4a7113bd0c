"""JSON-RPC client of one node, for commands."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from ophion.errors import CommandError
from ophion.runtime.http_client import HttpClient, HttpConnection, HttpError
from ophion.runtime.terminal_text import escape_line

_REPLY_TIMEOUT_S: Final = 30.0
_MAX_REPLY_BYTES: Final = 256 * 2**20


class JsonRpcEndpoint:
    """Address of a node, with the bearer token for every request."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        tls = None
        if parts.scheme == "https":
            import ssl

            tls = ssl.create_default_context()
        self.url = url
        self._client = HttpClient(url, tls, max_reply_bytes=_MAX_REPLY_BYTES)
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._head = self._client.head("POST", target, headers)

    async def connect(self) -> JsonRpcConnection:
        """Open a connection; raises `CommandError` when the node cannot be reached."""
        try:
            async with asyncio.timeout(_REPLY_TIMEOUT_S):
                connection = await self._client.connect()
        except HttpError as error:
            raise CommandError(f"{self.url} cannot be reached: {error}") from error
        except TimeoutError as error:
            raise CommandError(f"{self.url} cannot be reached: no answer") from error
        return JsonRpcConnection(self.url, connection, self._head)


class JsonRpcConnection:
    """One connection to the node, for one request at a time."""

    def __init__(self, url: str, connection: HttpConnection, head: bytes) -> None:
        self._url = url
        self._connection = connection
        self._head = head
        self._is_between_requests = True
        """False after an interrupted request, whose late reply would be taken for the reply to the next request."""

    async def call(self, method: str, *params: Any) -> Any:
        """Return the result of a method; raises `CommandError` with the node's own message."""
        reply = await self.post(orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        if not isinstance(reply, dict) or "result" not in reply:
            error = reply.get("error") if isinstance(reply, dict) else None
            message = error.get("message") if isinstance(error, dict) else "the reply has neither result nor error"
            raise CommandError(f"{self._url}: {method}: {escape_line(str(message))}")
        return reply["result"]

    async def post(self, body: bytes) -> Any:
        """Return the decoded reply to a request or a batch."""
        if not self._is_between_requests:
            raise CommandError(f"{self._url}: a request was interrupted; open another connection")
        self._is_between_requests = False
        try:
            async with asyncio.timeout(_REPLY_TIMEOUT_S):
                reply = await self._connection.exchange(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
        except TimeoutError as error:
            raise CommandError(f"{self._url} did not answer for {_REPLY_TIMEOUT_S:.0f} s") from error
        except HttpError as error:
            raise CommandError(f"{self._url} sends no JSON-RPC reply: {error}") from error
        if reply is None:
            raise CommandError(f"{self._url} sends no JSON-RPC reply: the connection was closed")
        if not reply.body.startswith((b"[", b"{")):
            raise CommandError(f"{self._url} sends no JSON-RPC reply: HTTP {reply.status} {escape_line(reply.reason)}")
        try:
            decoded = orjson.loads(reply.body)
        except ValueError as error:
            raise CommandError(f"{self._url} sends no JSON-RPC reply: {error}") from error
        self._is_between_requests = True
        return decoded

    async def close(self) -> None:
        await self._connection.close()
