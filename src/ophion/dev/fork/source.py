"""`ForkSource`: a JSON-RPC client for the node from which a chain is forked. Blocking; any thread may call it."""

from __future__ import annotations

import base64
import http.client
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

import orjson
from msgspec import Struct

from ophion.dev.fork.settings import ForkSettings
from ophion.errors import ForkSourceError

Call: TypeAlias = tuple[str, list[Any]]

MAX_BATCH = 200
MAX_RESPONSE_BYTES = 256 * 1024 * 1024
_MAX_BACKOFF_S = 10.0
_RETRIED_STATUS = (408, 429, 500, 502, 503, 504)
_OK = 200
_RATE_LIMIT_CODES = (-32005, -32097, 429)
METHOD_NOT_FOUND_CODES = (-32601, -32604)


class Failure(Struct, frozen=True):
    """An error response to one call."""

    code: int
    message: str
    data: Any = None


class _Retry(Exception):
    """Raised when an attempt fails but may succeed later."""


class ForkSource:
    """Sends calls in batches and repeats failed requests with growing waits."""

    def __init__(self, settings: ForkSettings, sleep: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(settings.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ForkSourceError(f"The address of the fork must begin with http:// or https://: {settings.url}")
        self.name = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        """The address without user, path and query, which may contain a key."""
        self.requests = 0
        """HTTP requests so far."""
        self.is_closed = False
        self._settings = settings
        self._sleep = sleep
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port or (443 if self._secure else 80)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = "Basic " + base64.b64encode(user).decode()
        for header in settings.headers:
            name, _, value = header.partition(":")
            self._headers[name.strip()] = value.strip()
        self._local = threading.local()
        self._takes_batches = True

    def ask(self, method: str, *params: Any) -> Any:
        """Return one result; raises `ForkSourceError` for an error response."""
        (found,) = self.batch([(method, list(params))])
        if isinstance(found, Failure):
            raise ForkSourceError(f"The source of the fork, {self.name}, refused {method}: {found.message}")
        return found

    def batch(self, calls: Sequence[Call]) -> list[Any]:
        """Return the result or `Failure` of each call, at most `MAX_BATCH` in one request."""
        found: list[Any] = []
        for start in range(0, len(calls), MAX_BATCH):
            found += self._share(calls[start : start + MAX_BATCH])
        return found

    def _share(self, calls: Sequence[Call]) -> list[Any]:
        if len(calls) == 1 or not self._takes_batches:
            return [self._answer(self._post(_message(call, 0)), 1)[0] for call in calls]
        body = self._post([_message(call, number) for number, call in enumerate(calls)])
        if not isinstance(body, list):
            # a node that does not support batches answers with a single error
            self._takes_batches = False
            return self._share(calls)
        return self._answer(body, len(calls))

    def _answer(self, body: Any, count: int) -> list[Any]:
        answers = {one.get("id"): one for one in (body if isinstance(body, list) else [body]) if isinstance(one, dict)}
        if any(number not in answers for number in range(count)):
            raise ForkSourceError(f"The source of the fork, {self.name}, left calls of a batch without answer")
        return [_result(answers[number]) for number in range(count)]

    def _post(self, message: Any) -> Any:
        """Send one request, with retries."""
        settings, wait_s = self._settings, self._settings.backoff_s
        text = orjson.dumps(message)
        for attempt in range(settings.retries + 1):
            try:
                return self._attempt(text)
            except (_Retry, OSError, http.client.HTTPException) as error:
                self._drop_connection()
                if attempt == settings.retries or self.is_closed:
                    raise ForkSourceError(
                        f"The source of the fork, {self.name}, does not answer ({str(error) or type(error).__name__})."
                        " Check --fork-url, or start again when it is back; state that was fetched before is kept."
                    ) from None
                self._sleep(wait_s)
                wait_s = min(2 * wait_s, _MAX_BACKOFF_S)
        raise AssertionError("unreachable")

    def _attempt(self, text: bytes) -> Any:
        connection = self._connection()
        self.requests += 1
        connection.request("POST", self._path, text, self._headers)
        response = connection.getresponse()
        body = response.read(MAX_RESPONSE_BYTES + 1)
        if response.status in _RETRIED_STATUS:
            raise _Retry(f"status {response.status}")
        if len(body) > MAX_RESPONSE_BYTES:
            raise ForkSourceError(f"The source of the fork, {self.name}, sent more than {MAX_RESPONSE_BYTES} bytes")
        try:
            found = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise ForkSourceError(
                f"The source of the fork, {self.name}, does not speak JSON-RPC (status {response.status})"
            ) from None
        if response.status != _OK and not isinstance(found, dict | list):
            raise ForkSourceError(f"The source of the fork, {self.name}, answered with status {response.status}")
        if isinstance(found, dict) and _is_rate_limit(found):
            raise _Retry("rate limit")
        return found

    def _connection(self) -> http.client.HTTPConnection:
        known: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if known is not None:
            return known
        timeout_s = self._settings.timeout_s
        made: http.client.HTTPConnection
        if self._secure:
            made = http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout_s, context=ssl.create_default_context()
            )
        else:
            made = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        self._local.connection = made
        return made

    def _drop_connection(self) -> None:
        known: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if known is not None:
            known.close()
            self._local.connection = None


def _message(call: Call, number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": call[0], "params": call[1]}


def _is_rate_limit(answer: dict[str, Any]) -> bool:
    error = answer.get("error")
    return isinstance(error, dict) and error.get("code") in _RATE_LIMIT_CODES


def _result(answer: dict[str, Any]) -> Any:
    error = answer.get("error")
    if error is None:
        return answer.get("result")
    if not isinstance(error, dict):
        return Failure(0, str(error))
    code = error.get("code")
    return Failure(code if isinstance(code, int) else 0, str(error.get("message")), error.get("data"))
