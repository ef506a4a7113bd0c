"""Which calls are small enough to be run on the event loop."""

from __future__ import annotations

from typing import Final

from ophion.primitives.types import Address

_MOST_GAS: Final = 1_000_000
_MOST: Final = 4096


class LightCalls:
    """Calls that used little gas when they were last run, by contract and function.

    A call goes to a lane until it is known to be light. So nothing unknown ever holds the loop, and neither a call that
    is heavy every time nor its other clients pay for trying.
    """

    def __init__(self) -> None:
        self._known: set[tuple[Address | None, bytes]] = set()

    def knows(self, to: Address | None, call_data: bytes) -> bool:
        """Whether this function of this contract may be expected to be quick."""
        return (to, call_data[:4]) in self._known

    def note(self, to: Address | None, call_data: bytes, gas_used: int) -> None:
        """What a call turned out to use."""
        key = (to, call_data[:4])
        if gas_used > _MOST_GAS:
            self._known.discard(key)
        elif key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known.add(key)
