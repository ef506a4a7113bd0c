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
    """Sends calls in batches and repeats failed requests after increasing waits."""

    def __init__(self, settings: ForkSettings, sleep: Callable[[float], None] = time.sleep) -> None:
        headers = (header.partition(":") for header in settings.headers)
        try:
            self._rpc = JsonRpcClient(
                settings.url,
                headers={name.strip(): value.strip() for name, _, value in headers},
                timeout_s=settings.timeout_s,
                max_batch_calls=MAX_BATCH,
                retry=RetryPolicy(settings.retries, settings.backoff_s),
                sleep=sleep,
            )
        except NoAnswer as error:
            raise ForkSourceError(f"The source of the fork, {settings.url}, is {error.why}.") from None
        self.name = self._rpc.address

    @property
    def requests(self) -> int:
        """Return the number of HTTP requests so far."""
        return self._rpc.requests

    def close(self) -> None:
        """Close idle connections and stop retries."""
        self._rpc.close()

    def batch(self, calls: Sequence[Call]) -> list[Any]:
        """Send calls in one batch. Returns a result or a `Failure` for each call."""
        try:
            return self._rpc.batch(calls)
        except NoAnswer as error:
            raise ForkSourceError(
                f"The source of the fork, {self.name}, does not answer ({error.why})."
                " Check --fork-url, or start again when it is back; state that was fetched before is kept."
            ) from None
