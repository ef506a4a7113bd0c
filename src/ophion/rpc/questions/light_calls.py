"""Which calls are small enough to be run on the event loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
        self._heavy: set[tuple[str, str]] = set()

    def knows(self, to: Address | None, call_data: bytes) -> bool:
        """Whether this function of this contract may be expected to be quick."""
        return (to, call_data[:4]) in self._light

    def is_heavy(self, call: Mapping[str, Any]) -> bool:
        """Whether the function that a call object names was heavy when it was last run."""
        if not self._heavy:
            return False
        to, call_data = call.get("to"), call.get("data") or call.get("input") or ""
        return type(to) is str and type(call_data) is str and (to[2:].lower(), call_data[2:10].lower()) in self._heavy

    def note(self, to: Address | None, call_data: bytes, gas_used: int) -> None:
        """What a call turned out to use."""
        key = (to, call_data[:4])
        name = ((to or b"").hex(), call_data[:4].hex())
        if len(self._light) >= _MOST or len(self._heavy) >= _MOST:
            self._light.clear()
            self._heavy.clear()
        if gas_used > _MOST_GAS:
            self._light.discard(key)
            self._heavy.add(name)
        else:
            self._light.add(key)
            self._heavy.discard(name)
