"""Maps the end of a connection to the `DialOutcome` that decides when the dialer dials the node again."""

from __future__ import annotations

from typing import Final

from ophion.peers.connection.context import ConnectionEnd
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.policy.dial_plan import BRIEF_S, LASTING_S, DialOutcome

_BROKEN: Final = (DisconnectReason.TCP_ERROR, DisconnectReason.CLIENT_QUITTING, DisconnectReason.TIMEOUT)
"""Disconnect reasons that mean a network failure. After such a reason, a connection that lasted `BRIEF_S` seconds
counts as successful. After any other reason, it must have lasted `LASTING_S` seconds.
"""


def outcome_of(ending: ConnectionEnd, lived: float) -> DialOutcome:
    """Return the outcome of a connection that lasted `lived` seconds after Hello."""
    if ending.reason is DisconnectReason.ALREADY_CONNECTED:
        return DialOutcome.DUPLICATE
    if ending.reason is DisconnectReason.TOO_MANY_PEERS:
        return DialOutcome.FULL
    has_worked = lived >= (BRIEF_S if ending.reason in _BROKEN else LASTING_S)
    return DialOutcome.LOST if has_worked else DialOutcome.FAILED
