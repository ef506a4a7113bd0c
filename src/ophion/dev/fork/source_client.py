"""`ForkSource`: JSON-RPC client of the node from which a chain is forked. Calls wait for the reply. Any thread may use
this client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ophion.dev.fork.settings import ForkSettings
from ophion.errors import ForkSourceError
from ophion.runtime.blocking_json_rpc import Call, JsonRpcClient, NoAnswer, RetryPolicy

MAX_BATCH = 200
METHOD_NOT_FOUND_CODES = (-32601, -32604)


class ForkSource:
    """Sends calls in batches. Failed requests are repeated after increasing waits, then sent to the next node."""

    def __init__(self, settings: ForkSettings, sleep: Callable[[float], None] = time.sleep) -> None:
        self._clients = [_client(settings, url, sleep) for url in (settings.url, *settings.other_urls)]
        self._current = 0

    @property
    def name(self) -> str:
        """Return the address of the node that is asked now."""
        return self._clients[self._current].address

    @property
    def requests(self) -> int:
        """Return the number of HTTP requests so far."""
        return sum(client.requests for client in self._clients)

    def close(self) -> None:
        """Close idle connections and stop retries."""
        for client in self._clients:
            client.close()

    def batch(self, calls: Sequence[Call]) -> list[Any]:
        """Send calls in one batch. Returns a result or a `Failure` for each call.

        If a node does not answer, the next one is asked. Later batches stay with the node that has answered.
        """
        first = self._current
        count = len(self._clients)
        for number in range(count):
            place = (first + number) % count
            try:
                answers = self._clients[place].batch(calls)
            except NoAnswer as error:
                reason = error.why
            else:
                self._current = place
                return answers
        raise ForkSourceError(
            f"The source of the fork, {self.name}, does not answer ({reason})."
            " Check --fork-url, or start again when it is back; state that was fetched before is kept."
        )


def _client(settings: ForkSettings, url: str, sleep: Callable[[float], None]) -> JsonRpcClient:
    headers = (header.partition(":") for header in settings.headers)
    try:
        return JsonRpcClient(
            url,
            headers={name.strip(): value.strip() for name, _, value in headers},
            timeout_s=settings.timeout_s,
            max_batch_calls=MAX_BATCH,
            retry=RetryPolicy(settings.retries, settings.backoff_s),
            sleep=sleep,
        )
    except NoAnswer as error:
        raise ForkSourceError(f"The source of the fork, {url}, is {error.why}.") from None
