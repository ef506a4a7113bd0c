"""Decides which calls are quick enough for the event loop."""

from __future__ import annotations

from typing import Final

from ophion.native.executor import CallCostCache
from ophion.primitives.types import Address

_MAX_GAS: Final = 1_000_000


class CallCosts:
    """Cost of recent calls by contract and function.

    A plain call runs on the event loop with a deadline of two milliseconds, unless its function is known to be slow. A
    call with optional keys (such as fees or an access list) runs in a worker thread until its function is known to be
    quick. Missed deadlines use up a budget (`CallCostCache`). When the budget is empty, unknown functions run in a
    worker thread. Contract creations always run in a worker thread.
    """

    def __init__(self) -> None:
        self.tried = CallCostCache()
        self.repeated = CallCostCache()
        """Costs of requests that run a call several times, such as gas estimates."""

    def knows(self, to: Address | None, call_data: bytes) -> bool:
        """Return whether this function of this contract is known to be quick."""
        return to is not None and self.tried.is_light(to, call_data)

    def record(self, to: Address | None, call_data: bytes, gas_used: int) -> None:
        """Record the gas that a call used."""
        if to is not None:
            self.tried.note(to, call_data, gas_used > _MAX_GAS)
