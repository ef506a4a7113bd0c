"""States of an HTTP connection, and the activity of its client."""

from __future__ import annotations

from enum import Enum
from typing import Final

from ophion.rpc.transport.connection_slots import WITHOUT_REQUEST
from ophion.rpc.transport.slow_reader import SlowReaderCheck

_STALLED_S: Final = 5.0
"""A request whose bytes stop arriving for this many seconds no longer protects its connection from eviction."""


class HttpState(Enum):
    """State of a connection; decides what happens to the next bytes that arrive.

        READY <-> OPEN -> ENDING -> closed
         |  |       |---> REFUSED -> closed
         |  |       '---> DETACHED
         |  RELAYING
         AWAITING_BODY

    `HttpConnection._settle` moves between READY and OPEN. ENDING, REFUSED and DETACHED are final.
    """

    READY = "no request is open and the session is known: a plain request takes the fast path"
    AWAITING_BODY = "as READY, and a known head has arrived without its body"
    RELAYING = "as OPEN, and the only open request was forwarded by the gateway's fast path"
    OPEN = "bytes go to the parser: a request is open, the client does not read, or no session is known"
    ENDING = "no more requests are read; the connection closes after the last answer"
    REFUSED = "as ENDING, answered before the request was complete: input is discarded until the client closes"
    DETACHED = "another protocol owns the transport"


class ClientActivity:
    """Records how long a client has been quiet, and whether it reads its answers."""

    __slots__ = ("_has_asked", "_reader_check", "quiet_s", "was_active")

    def __init__(self) -> None:
        self.was_active = False
        """Whether bytes have arrived since the last tick."""
        self.quiet_s = 0.0
        self._has_asked = False
        self._reader_check = SlowReaderCheck()

    def pause(self, unsent_bytes: int) -> None:
        """Start to measure how fast the client reads, because its send buffer is full."""
        self.quiet_s = 0.0
        self._reader_check.begin(unsent_bytes)

    def check_reading(self, unsent_bytes: int) -> None:
        """Restart the timeout if the client has read enough since the last check."""
        if self._reader_check.has_read_enough(unsent_bytes):
            self.quiet_s = 0.0

    def tick_idle(self) -> bool:
        """Return whether the client was active since the last tick. If so, restart the timeout."""
        if not self.was_active:
            return False
        self.was_active, self._has_asked, self.quiet_s = False, True, 0.0
        return True

    def idleness(self, in_message: bool) -> float:
        """Return the seconds without a request, or a constant, as defined by `SlotHolder.idleness`."""
        if in_message:
            return WITHOUT_REQUEST if self.quiet_s >= _STALLED_S else 0.0
        if self.was_active:
            return 0.0
        return self.quiet_s if self._has_asked else WITHOUT_REQUEST + self.quiet_s
