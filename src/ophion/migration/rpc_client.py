"""A JSON-RPC client for the old and the new node: single calls and batches over HTTP."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from ophion.errors import CommandError

_TIMEOUT_S: Final = 60.0
_MAX_ANSWER_BYTES: Final = 512 * 2**20

Call: TypeAlias = tuple[str, Sequence[Any]]
"""Method and parameters."""


class Failure(Struct, frozen=True):
    """An error that the node returned."""

    code: int
    message: str


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: they would carry the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_NoRedirects)


class RpcClient:
    """Calls one node. Raises `CommandError` when it does not answer in JSON-RPC."""

    def __init__(self, url: str, token: str | None = None, timeout_s: float = _TIMEOUT_S) -> None:
        self.url = url
        self._timeout_s = timeout_s
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def call(self, method: str, *params: Any) -> Any:
        """Return the result of one call; `CommandError` for an error of the node."""
        result = self.batch([(method, params)])[0]
        if isinstance(result, Failure):
            raise CommandError(f"The node at {self.url} refuses {method}: {result.message!a} ({result.code}).")
        return result

    def batch(self, calls: Sequence[Call]) -> list[Any]:
        """Return the results in the order of the calls, a `Failure` for each that failed."""
        requests = [
            {"jsonrpc": "2.0", "id": index, "method": method, "params": list(params)}
            for index, (method, params) in enumerate(calls)
        ]
        answers = self._post(requests if len(requests) > 1 else requests[0])
        if isinstance(answers, dict):
            answers = [answers]
        results: list[Any] = [None] * len(calls)
        seen: set[int] = set()
        for answer in answers if isinstance(answers, list) else ():
            index = answer.get("id") if isinstance(answer, dict) else None
            if len(calls) == 1:
                index = 0
            if not isinstance(index, int) or not 0 <= index < len(calls):
                raise self._not_json_rpc()
            seen.add(index)
            error = answer.get("error")
            results[index] = _failure(error) if isinstance(error, dict) else answer.get("result")
        if len(seen) != len(calls):
            raise self._not_json_rpc()
        return results

    def _post(self, content: object) -> Any:
        request = urllib.request.Request(self.url, json.dumps(content).encode(), self._headers)
        try:
            with _OPENER.open(request, timeout=self._timeout_s) as response:
                return json.loads(response.read(_MAX_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            raise CommandError(f"The node at {self.url} answers with HTTP status {error.code}.") from None
        except OSError as error:
            cause = getattr(error, "reason", None) or error
            why = getattr(cause, "strerror", None) or cause
            raise CommandError(f"The node at {self.url} does not answer: {str(why)!a}.") from None
        except (ValueError, RecursionError, http.client.HTTPException):
            raise self._not_json_rpc() from None

    def _not_json_rpc(self) -> CommandError:
        return CommandError(f"The node at {self.url} does not answer in JSON-RPC.")


def _failure(error: dict[str, Any]) -> Failure:
    code = error.get("code")
    return Failure(code if isinstance(code, int) else 0, str(error.get("message"))[:300])
