"""Which calls are small enough to be run on the event loop."""

from __future__ import annotations

from typing import Final

from ophion.native.executor import CallCostCache
from ophion.primitives.types import Address

_MAX_GAS: Final = 1_000_000


class CallCosts:
    """What calls used when they were last run, by contract and function.

    A usual call is tried on the loop with a deadline of two milliseconds unless it is known to be heavy. One with
    members out of the usual goes to a lane until it is known to be light. So nothing holds the loop for long, and
    neither a call that is heavy every time nor its other clients pay for trying; whoever calls what nobody knows, again
    and again, has used up the time for tries in vain after a moment (`CallCostCache`). The making of a contract has no
    function by which to know it, and goes to a lane.
    """

    def __init__(self) -> None:
        self.tried = CallCostCache()
        self.repeated = CallCostCache()
        """What runs a call several times in a row, as an estimate does."""

    def knows(self, to: Address | None, call_data: bytes) -> bool:
        """Whether this function of this contract may be expected to be quick."""
        return to is not None and self.tried.is_light(to, call_data)

    def note(self, to: Address | None, call_data: bytes, gas_used: int) -> None:
        """What a call turned out to use."""
        if to is not None:
            self.tried.note(to, call_data, gas_used > _MAX_GAS)
