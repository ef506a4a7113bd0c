"""Which calls are small enough to be run on the event loop."""

from __future__ import annotations

from typing import Final

from ophion.native.executor import HeavyCalls
from ophion.primitives.types import Address

_MOST_GAS: Final = 1_000_000
_MOST: Final = 4096


class LightCalls:
    """What calls used when they were last run, by contract and function.

    A usual call is tried on the loop with a deadline of two milliseconds unless it is known to be heavy. One with
    members out of the usual goes to a lane until it is known to be light. So nothing holds the loop for long, and
    neither a call that is heavy every time nor its other clients pay for trying.
    """

    def __init__(self) -> None:
        self._light: set[tuple[Address | None, bytes]] = set()
        self.heavy = HeavyCalls()
        """Those that are not to be tried."""

    def knows(self, to: Address | None, call_data: bytes) -> bool:
        """Whether this function of this contract may be expected to be quick."""
        return (to, call_data[:4]) in self._light

    def note(self, to: Address | None, call_data: bytes, gas_used: int) -> None:
        """What a call turned out to use."""
        key, is_heavy = (to, call_data[:4]), gas_used > _MOST_GAS
        if len(self._light) >= _MOST or len(self.heavy) >= _MOST:
            self._light.clear()
            self.heavy.clear()
        if is_heavy:
            self._light.discard(key)
        else:
            self._light.add(key)
        if to is not None:
            self.heavy.note(to, call_data, is_heavy)
