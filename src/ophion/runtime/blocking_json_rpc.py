"""Blocking JSON-RPC client over HTTP: persistent connections, batches and retries. Any thread may call it."""

from __future__ import annotations

import base64
import http.client
import io
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

import orjson
from msgspec import Struct

from ophion.errors import CommandError
from ophion.runtime.options import is_url
from ophion.runtime.terminal_text import escape_line

Call: TypeAlias = tuple[str, Sequence[Any]]
"""A JSON-RPC call: method and parameters."""

DEFAULT_TIMEOUT_S: Final = 60.0
MAX_REPLY_BYTES: Final = 512 * 2**20
MAX_REPLY_TIMEOUTS: Final = 10
"""A whole response may take this many times the timeout of one read."""
MAX_BATCH_CALLS: Final = 500
CONNECT_TIMEOUT_S: Final = 5.0
MAX_UNREACHABLE_S: Final = 3.0
"""Seconds for which a request is repeated while no connection can be opened. Short, because the address is often wrong.
A busy server is retried for longer.
"""
_MAX_MESSAGE_CHARS: Final = 500
_MAX_BACKOFF_S: Final = 10.0
_REFUSED_STATUS: Final = (401, 403)
_RETRIED_STATUS: Final = (408, 429, 500, 502, 503, 504)
_RATE_LIMIT_CODES: Final = (-32005, -32097, 429)
_MAX_REASON_CHARS: Final = 200
_NOT_JSON_RPC: Final = "the response is not JSON-RPC"
_WRONG_FORM: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Failure(Struct, frozen=True):
    """An error that the node returned for one call."""

    code: int
    message: str
    data: Any = None


class NoAnswer(CommandError):
    """Raised when a node does not answer in JSON-RPC. `status` is the HTTP status, if that is the reason."""

    def __init__(self, address: str, why: str, status: int | None = None) -> None:
        super().__init__(f"The node at {address} does not answer: {why}.")
        self.why = why
        self.status = status


class RetryPolicy(Struct, frozen=True):
    """How often a request is repeated after a failed connection, a busy server or a rate limit."""

    count: int = 0
    backoff_s: float = 1.0
    """Seconds to wait before the first retry. The wait doubles with each retry."""


NO_RETRIES: Final = RetryPolicy()


class _TryLater(Exception):
    """Raised when an attempt fails but may succeed later."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


class _Unreachable(_TryLater):
    """Raised when no connection can be opened."""


class JsonRpcClient:
    """Calls one node. Raises `NoAnswer` when the node does not answer in JSON-RPC."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_batch_calls: int = MAX_BATCH_CALLS,
        retry: RetryPolicy = NO_RETRIES,
        encode: Callable[[Any], Any] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare a client. `encode` converts parameters that have no JSON form."""
        if not is_url(url, "http", "https"):
            raise NoAnswer(url, "not a URL of a node, which must begin with http:// or https:// and name a host")
        parts = urlsplit(url)
        self.address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        """The URL without user, path and query, which may contain a key."""
        self.requests = 0
        """Number of HTTP requests so far."""
        self.is_closed = False
        """Whether the client is closed. A closed client does not retry."""
        self._parts = parts
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = "Basic " + base64.b64encode(user).decode()
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._headers.update(headers or {})
        self._timeout_s = timeout_s
        self._max_batch_calls = max_batch_calls
        self._retry = retry
        self._encode = encode
        self._sleep = sleep
        self._idle: list[http.client.HTTPConnection] = []
        self._takes_batches = True

    def call(self, method: str, *params: Any) -> Any:
        """Return the result of one call. Raises `CommandError` for an error of the node."""
        return self.results([(method, params)])[0]

    def results(self, calls: Sequence[Call]) -> list[Any]:
        """Return the results in the order of the calls. Raises `CommandError` for an error of the node."""
        found = self.batch(calls)
        for (method, _), result in zip(calls, found, strict=True):
            if isinstance(result, Failure):
                message = escape_line(result.message[:_MAX_MESSAGE_CHARS])
                raise CommandError(f"The node at {self.address} refuses {method}: {message} ({result.code}).")
        return found

    def batch(self, calls: Sequence[Call]) -> list[Any]:
        """Return the results in the order of the calls, with a `Failure` for each failed call."""
        results: list[Any] = []
        for start in range(0, len(calls), self._max_batch_calls):
            results += self._share(calls[start : start + self._max_batch_calls])
        return results

    @contextmanager
    def reading(self, subject: str) -> Iterator[None]:
        """Turn a reply with an unexpected structure into an error that names the node."""
        try:
            yield
        except _WRONG_FORM as error:
            reason = escape_line(repr(error)[:_MAX_REASON_CHARS])
            raise CommandError(f"The node at {self.address} gives an invalid answer for {subject}: {reason}") from error

    def close(self) -> None:
        """Close idle connections and stop retries."""
        self.is_closed = True
        while self._idle:
            self._idle.pop().close()

    def _share(self, calls: Sequence[Call]) -> list[Any]:
        if len(calls) == 1 or not self._takes_batches:
            return [self._result(self._post(_request(call, 1))) for call in calls]
        replies = self._post([_request(call, index) for index, call in enumerate(calls)])
        if isinstance(replies, dict):
            # the node answers a batch with a single error, so it does not support batches
            self._takes_batches = False
            return self._share(calls)
        by_id = {reply["id"]: reply for reply in replies if isinstance(reply, dict) and type(reply.get("id")) is int}
        if len(by_id) != len(replies):
            raise NoAnswer(self.address, _NOT_JSON_RPC)
        return [self._result(by_id.get(index)) for index in range(len(calls))]

    def _result(self, reply: Any) -> Any:
        error = reply.get("error") if isinstance(reply, dict) else None
        if isinstance(error, dict):
            code = error.get("code")
            return Failure(
                code if isinstance(code, int) else 0, escape_line(str(error.get("message"))), error.get("data")
            )
        if error is not None or not isinstance(reply, dict) or "result" not in reply:
            raise NoAnswer(self.address, _NOT_JSON_RPC)
        return reply["result"]

    def _post(self, message: Any) -> Any:
        """Send one request, with retries, and return the decoded reply."""
        body = orjson.dumps(message, self._encode)
        wait_s, unreachable_s = self._retry.backoff_s, 0.0
        for attempt in range(self._retry.count + 1):
            started_at = time.monotonic()
            try:
                return self._attempt(body)
            except (_TryLater, OSError, http.client.HTTPException) as error:
                pause_s = wait_s
                if isinstance(error, _Unreachable):
                    unreachable_s += time.monotonic() - started_at
                    pause_s = min(wait_s, MAX_UNREACHABLE_S - unreachable_s)
                    unreachable_s += pause_s
                if attempt == self._retry.count or self.is_closed or pause_s < 0:
                    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                    raise NoAnswer(self.address, escape_line(why), getattr(error, "status", None)) from None
            self._sleep(pause_s)
            wait_s = min(2 * wait_s, _MAX_BACKOFF_S)
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, body: bytes) -> Any:
        status, reason, content = self._exchange(body)
        failed = f"HTTP status {status} {escape_line(reason)}"
        if status in _RETRIED_STATUS and self._retry.count:
            raise _TryLater(failed, status)
        try:
            reply = orjson.loads(content)
        except orjson.JSONDecodeError:
            reply = None
        if not isinstance(reply, dict | list) or status in _REFUSED_STATUS:
            is_http_error = status != http.client.OK
            raise NoAnswer(self.address, failed if is_http_error else _NOT_JSON_RPC, status if is_http_error else None)
        if isinstance(reply, dict) and self._retry.count and _is_rate_limit(reply):
            raise _TryLater("rate limit")
        return reply

    def _exchange(self, body: bytes) -> tuple[int, str, bytes]:
        """Return status, reason and body. Opens another connection if the server has closed an idle connection."""
        while True:
            connection = self._idle.pop() if self._idle else self._connection()
            is_reused = connection.sock is not None
            try:
                if not is_reused:
                    self._connect(connection)
                connection.request("POST", self._target, body, self._headers)
                with connection.getresponse() as response:
                    content = response.read(MAX_REPLY_BYTES + 1)
            except BaseException as error:
                connection.close()
                if is_reused and isinstance(error, ConnectionError):
                    continue
                raise
            finally:
                self.requests += 1
            if len(content) > MAX_REPLY_BYTES:
                connection.close()
                raise NoAnswer(self.address, f"the response has more than {MAX_REPLY_BYTES} bytes")
            self._idle.append(connection)
            return response.status, response.reason, content

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        connection.timeout = min(self._timeout_s, CONNECT_TIMEOUT_S)
        try:
            connection.connect()
        except OSError as error:
            raise _Unreachable(error.strerror or str(error)) from error
        connection.sock.settimeout(self._timeout_s)

    def _connection(self) -> http.client.HTTPConnection:
        parts = self._parts
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self._timeout_s)
        connection.response_class = _TimedResponse
        return connection


class _TimedResponse(http.client.HTTPResponse):
    """An HTTP response with a deadline for the whole response, not only for each read."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_TimedReader(sock))


class _TimedReader(io.RawIOBase):
    """Reads from a socket until a deadline."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._deadline = time.monotonic() + MAX_REPLY_TIMEOUTS * (sock.gettimeout() or DEFAULT_TIMEOUT_S)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() > self._deadline:
            raise TimeoutError("the response takes too long")
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _request(call: Call, id: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": call[0], "params": list(call[1])}


def _is_rate_limit(reply: dict[str, Any]) -> bool:
    error = reply.get("error")
    return isinstance(error, dict) and error.get("code") in _RATE_LIMIT_CODES
