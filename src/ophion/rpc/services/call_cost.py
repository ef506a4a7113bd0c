"""Decides which calls are small enough for the event loop."""

from __future__ import annotations

from typing import Final

from ophion.native.executor import CallCostCache
from ophion.primitives.types import Address

_MAX_GAS: Final = 1_000_000


class CallCosts:
    """Cost of recent calls by contract and function.

    A plain call runs on the loop with a deadline of two milliseconds, unless it is known to be heavy. A call with
    further
    members runs in a lane until it is known to be light. Clients that keep calling unknown heavy functions exhaust a
    budget of failed attempts (`CallCostCache`); then their calls go to a lane. Contract creations always run in a lane.
    """

    def __init__(self) -> None:
        self.tried = CallCostCache()
        self.repeated = CallCostCache()
        """Costs of requests that run a call several times, such as estimates."""

    def knows(self, to: Address | None, call_data: bytes) -> bool:
        """Whether this function of this contract is expected to be quick."""
        return to is not None and self.tried.is_light(to, call_data)

    def note(self, to: Address | None, call_data: bytes, gas_used: int) -> None:
        """Record the gas that a call used."""
        if to is not None:
            self.tried.note(to, call_data, gas_used > _MAX_GAS)
