"""How a connection ends after an error in handling its messages."""

from __future__ import annotations

import logging
from typing import NamedTuple

from ophion.errors import DecodeError, StorageError
from ophion.native.wire import WireError
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved

log = logging.getLogger(__name__)


class ConnectionFailure(NamedTuple):
    """Why and how this node disconnects a peer after an error."""

    reason: DisconnectReason
    text: str
    can_send: bool = True
    """Whether the session can still encrypt a Disconnect."""


def failure_of(error: Exception, peer: object) -> ConnectionFailure:
    """Return how to disconnect a peer after an error. Logs errors that are not the peer's fault."""
    match error:
        case PeerMisbehaved():
            return ConnectionFailure(error.reason, error.text)
        case WireError():
            return ConnectionFailure(DisconnectReason.BREACH, str(error), can_send=False)
        case DecodeError():
            return ConnectionFailure(DisconnectReason.BREACH, str(error))
        case StorageError():
            log.error("cannot handle message peer=%s error=%s", peer, error)
        case _:
            log.exception("cannot handle message peer=%s", peer, exc_info=error)
    return ConnectionFailure(DisconnectReason.SUBPROTOCOL, "internal error")
